package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var cancelTests = []test{
	{"descendants come breadth first", cancelDescendants},
	{"a request marks the tree", cancelMarks},
	{"the rows say who asked first", cancelNames},
	{"no child escapes a request", cancelRace},
	{"a thread that continues comes after what is below", cancelChain},
	{"no successor escapes a request", cancelHandoffRace},
}

func cancelDescendants(h *harness) {
	root := h.running("root", "")
	left, right := h.running("left", root), h.running("right", root)
	low := h.running("low", left)
	lowest := h.register("lowest", low)
	beside := h.register("beside", right)
	h.running("stranger", "")

	for id, want := range map[thread.ID][]thread.ID{
		root:   {left, right, low, beside, lowest},
		left:   {low, lowest},
		lowest: nil,
	} {
		below, err := h.Descendants(h.ctx, id)
		h.noError(err)
		if ids(below) != fmt.Sprint(want) {
			h.Errorf("below %s: %s, want %v", id, ids(below), want)
		}
	}
	if _, err := h.Descendants(h.ctx, "no/such"); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("descendants of an unknown id: %v", err)
	}
}

func cancelMarks(h *harness) {
	root := h.running("root", "")
	waiting := h.register("waiting", root)
	ended := h.running("ended", root)
	below := h.running("below", ended)
	h.apply(h.finished(ended, thread.Completed))
	stranger := h.running("stranger", "")

	first, second := h.now.Add(time.Second), h.now.Add(time.Minute)
	for _, at := range []time.Time{first, second} {
		marked, err := h.RequestCancel(h.ctx, root, "", at)
		h.noError(err)
		if want := []thread.ID{root, waiting, below}; ids(marked) != fmt.Sprint(want) {
			h.Errorf("marked %s, want %v", ids(marked), want)
		}
		for _, r := range marked {
			if !r.CancelRequestedAt.Equal(first) {
				h.Errorf("%s was asked to stop at %s, want %s", r.ThreadID, r.CancelRequestedAt, first)
			}
		}
	}
	for _, id := range []thread.ID{ended, stranger} {
		if rec := h.get(id); !rec.CancelRequestedAt.IsZero() {
			h.Errorf("%s %s was marked", rec.Status, id)
		}
	}
	if marked, err := h.RequestCancel(h.ctx, ended, "", second); err != nil || ids(marked) != fmt.Sprint([]thread.ID{below}) {
		h.Errorf("below a terminal thread: %s, %v", ids(marked), err)
	}
	if _, err := h.RequestCancel(h.ctx, "no/such", "", first); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("request for an unknown id: %v", err)
	}
}

// cancelNames: the rows say who asked first, beside what is noted of the threads, and the
// next request changes nothing of that.
func cancelNames(h *harness) {
	root := h.running("root", "")
	noted, plain := h.running("noted", root), h.running("plain", root)
	nobody := h.running("nobody", "")
	_, err := h.Label(h.ctx, noted, store.LabelChange{Metadata: json.RawMessage(`{"team":"a \"b\""}`)}, h.now)
	h.noError(err)
	const who = `MCP client "x\y"`
	for _, by := range []string{who, "somebody else"} {
		_, err := h.RequestCancel(h.ctx, root, by, h.now)
		h.noError(err)
	}
	_, err = h.RequestCancel(h.ctx, nobody, "", h.now)
	h.noError(err)
	for id, want := range map[thread.ID]string{root: who, noted: who, plain: who, nobody: ""} {
		rec := h.get(id)
		if rec.CancelledBy() != want || !json.Valid(rec.Metadata) {
			h.Errorf("%s was cancelled by %q, want %q; metadata %s", id, rec.CancelledBy(), want, rec.Metadata)
		}
		if said := rec.CancelCause(); !errors.Is(said, thread.ErrCancelled) || !strings.HasSuffix(said.Error(), want) {
			h.Errorf("the cause of %s: %v", id, said)
		}
	}
	if said := string(h.get(noted).Metadata); !strings.HasPrefix(said, `{"team":"a \"b\"",`) {
		h.Errorf("what was noted of it: %s", said)
	}
	if said := string(h.get(nobody).Metadata); said != "{}" {
		h.Errorf("of one that nobody says who cancelled: %s", said)
	}
}

func cancelRace(h *harness) {
	const spawners = 12
	root := h.running("root", "")
	errs := atOnce(spawners+1, func(i int) error {
		if i == spawners/2 {
			_, err := h.RequestCancel(h.ctx, root, "", h.now)
			return err
		}
		_, _, err := h.Register(h.ctx, h.newThread("child", root), claimNothing)
		if errors.Is(err, store.ErrParentGone) {
			return nil
		}
		return err
	})
	for _, err := range errs {
		h.noError(err)
	}
	below, err := h.Descendants(h.ctx, root)
	h.noError(err)
	for _, r := range below {
		if r.CancelRequestedAt.IsZero() {
			h.Errorf("%s was registered and not asked to stop", r.ThreadID)
		}
	}
}

// cancelChain asks a tree to stop in which threads have handed over, and one was
// resumed outside it.
func cancelChain(h *harness) {
	first := h.running("first", "")
	child := h.running("child", first)
	second := h.successor(first, true)
	h.apply(h.continued(first, second))
	h.apply(store.Claimed(second, thread.Process{PID: 1, Host: "host"}, h.now))
	nextChild := h.successor(child, true)
	h.apply(h.continued(child, nextChild))
	of2nd := h.running("of2nd", second)
	h.apply(h.finished(of2nd, thread.Error))
	resumed := h.successor(of2nd, false)
	third := h.successor(second, true) // which has not handed over yet
	h.running("stranger", "")

	for id, want := range map[thread.ID][]thread.ID{
		first:  {child, second, nextChild, third, of2nd, resumed}, // those of one moment by their ids
		second: {third, of2nd, resumed},
		child:  {nextChild},
		of2nd:  {resumed},
		third:  nil,
	} {
		below, err := h.Descendants(h.ctx, id)
		h.noError(err)
		if ids(below) != fmt.Sprint(want) {
			h.Errorf("below %s: %s, want %v", id, ids(below), want)
		}
	}
	marked, err := h.RequestCancel(h.ctx, first, "", h.now)
	h.noError(err)
	if want := []thread.ID{second, nextChild, third, resumed}; ids(marked) != fmt.Sprint(want) {
		h.Errorf("marked %s, want %v", ids(marked), want)
	}
	for _, r := range marked {
		if r.CancelRequestedAt.IsZero() {
			h.Errorf("%s was not asked to stop", r.ThreadID)
		}
	}
	if _, _, err := h.Register(h.ctx, h.newLate("late", of2nd), claimNothing); !errors.Is(err, store.ErrParentGone) {
		h.Errorf("started late below a thread whose chain was asked to stop: %v", err)
	}
	if _, _, err := h.Register(h.ctx, h.newLate("late", child), claimNothing); !errors.Is(err, store.ErrParentGone) {
		h.Errorf("started late by a thread whose successor was asked to stop: %v", err)
	}
}

// cancelHandoffRace asks a thread to stop while it hands over.
func cancelHandoffRace(h *harness) {
	for range 10 {
		id := h.running("d", "")
		for _, err := range atOnce(2, func(i int) error {
			if i == 0 {
				_, err := h.RequestCancel(h.ctx, id, "", h.now)
				return err
			}
			next, _, err := h.Register(h.ctx, h.newSuccessor(id, true), claimNothing)
			if refused := new(store.PredecessorError); errors.As(err, &refused) {
				return nil
			}
			if err == nil {
				_, err = h.Apply(h.ctx, h.continued(id, next.ThreadID))
			}
			return err
		}) {
			h.noError(err)
		}
		below, err := h.Descendants(h.ctx, id)
		h.noError(err)
		for _, rec := range append(below, h.get(id)) {
			if !rec.Status.Terminal() && rec.CancelRequestedAt.IsZero() {
				h.Errorf("escaped: %+v", rec)
			}
		}
	}
}
