package storetest

import (
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var stateTests = []test{
	{"every change from every state", stateTable},
	{"a change of nothing is refused", stateUnknown},
	{"one of many claims wins", stateClaimRace},
	{"a cancel on record refuses the claim", stateClaimCancelled},
	{"the outcome is stored", stateOutcome},
	{"cost is absolute and kept", stateCost},
	{"cost is recorded while running only", stateCostGuard},
	{"the process is recorded until the end", stateProcess},
}

// stateTable holds the store to thread.CanMove, for every pair of states.
func stateTable(h *harness) {
	for _, to := range thread.States() {
		if _, err := store.Finished("x", outcome(to), nil, h.now); (err == nil) != to.Terminal() {
			h.Errorf("Finished accepts %s: %v", to, err)
		}
	}
	for _, from := range thread.States() {
		for _, to := range thread.States() {
			if to == thread.Created {
				continue // no change leads there, as seen above
			}
			id := h.inState(from)
			before := h.get(id)
			var c store.Change
			if to == thread.Running {
				c = store.Claimed(id, thread.Process{PID: 1, Host: "h"}, h.now.Add(time.Second))
			} else {
				c = h.finished(id, to)
			}
			rec, err := h.Apply(h.ctx, c)
			after := h.get(id)
			switch allowed := thread.CanMove(from, to); {
			case allowed && (err != nil || rec.Status != to || !reflect.DeepEqual(rec, after)):
				h.Errorf("%s → %s: %v, row %+v", from, to, err, after)
			case !allowed && (!errors.Is(err, thread.ErrSettled) || !reflect.DeepEqual(before, after)):
				h.Errorf("%s → %s: %v\nbefore %+v\nafter  %+v", from, to, err, before, after)
			}
		}
	}
}

func stateUnknown(h *harness) {
	for _, c := range []store.Change{store.Claimed("no/such", thread.Process{PID: 1, Host: "h"}, h.now), h.finished("no/such", thread.Error)} {
		if _, err := h.Apply(h.ctx, c); !errors.Is(err, thread.ErrNotFound) {
			h.Errorf("%s: %v", c.To(), err)
		}
	}
	if err := h.SetProcess(h.ctx, "no/such", thread.Process{PID: 1, Host: "h"}); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("SetProcess: %v", err)
	}
	if err := h.RecordCost(h.ctx, "no/such", thread.Cost{}, 0); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("RecordCost: %v", err)
	}
}

func stateClaimRace(h *harness) {
	id := h.register("d", "")
	winner := 0
	for i, err := range atOnce(8, func(i int) error {
		_, err := h.Apply(h.ctx, store.Claimed(id, someProcess(100+i), h.now))
		return err
	}) {
		switch {
		case err == nil && winner != 0:
			h.Errorf("claims %d and %d won", winner, 100+i)
		case err == nil:
			winner = 100 + i
		case !errors.Is(err, thread.ErrSettled):
			h.Errorf("claim refused with %v", err)
		}
	}
	if rec := h.get(id); rec.Status != thread.Running || rec.Process != someProcess(winner) {
		h.Errorf("winner %d, row %+v", winner, rec)
	}
}

func stateClaimCancelled(h *harness) {
	id := h.register("d", "")
	_, err := h.RequestCancel(h.ctx, id, "", h.now)
	h.noError(err)
	if _, err := h.Apply(h.ctx, store.Claimed(id, thread.Process{PID: 1, Host: "h"}, h.now)); !errors.Is(err, thread.ErrSettled) {
		h.Errorf("claim after a cancel: %v", err)
	}
	h.apply(h.finished(id, thread.Cancelled))
}

func stateOutcome(h *harness) {
	id := h.running("d", "")
	o := thread.Outcome{
		State: thread.Error, Result: "half", Outputs: map[string]any{"list": []any{"ü", 1.5, nil}},
		Data: json.RawMessage(`{"a":1}`), Warnings: []string{"w"},
		Error: &thread.Problem{Code: "llm", Message: "no answer", Doing: "asking", Signal: "SIGKILL"},
	}
	cost := thread.Cost{Turns: 3, InputTokens: 4, OutputTokens: 5, CacheReadTokens: 6, CacheWriteTokens: 7, Spend: 8}
	at := h.now.Add(time.Minute)
	c, err := store.Finished(id, o, &cost, at)
	h.noError(err)
	rec := h.apply(c)
	if !reflect.DeepEqual(rec.Outcome, &o) || rec.Cost != cost || !rec.CompletedAt.Equal(at) || !rec.UpdatedAt.Equal(at) {
		h.Errorf("finished as %+v\n%+v", rec, rec.Outcome)
	}
	if got := h.get(id); !reflect.DeepEqual(got, rec) {
		h.Errorf("row %+v\nwant %+v", got, rec)
	}
	bad, err := store.Finished(h.running("d", ""), thread.Outcome{State: thread.Completed, Data: json.RawMessage(`{`)}, nil, at)
	h.noError(err)
	if _, err := h.Apply(h.ctx, bad); err == nil {
		h.Error("an outcome that is not JSON was stored")
	}
	if rec := h.get(bad.ID()); rec.Status != thread.Running {
		h.Errorf("a refused outcome left the thread %s", rec.Status)
	}
}

func stateCost(h *harness) {
	id := h.running("d", "")
	first := thread.Cost{Turns: 1, InputTokens: 10, OutputTokens: 20, CacheReadTokens: 30, CacheWriteTokens: 40, Spend: 50}
	second := first.Add(first)
	for _, c := range []thread.Cost{first, second, second} {
		h.noError(h.RecordCost(h.ctx, id, c, 99))
	}
	if rec := h.get(id); rec.Cost != second || rec.TokenCount != 99 {
		h.Errorf("cost %+v, context %d", rec.Cost, rec.TokenCount)
	}
	if rec := h.apply(h.finished(id, thread.Completed)); rec.Cost != second || rec.TokenCount != 99 {
		h.Errorf("finishing without a cost made it %+v", rec.Cost)
	}
}

func stateCostGuard(h *harness) {
	for _, s := range thread.States() {
		id := h.inState(s)
		err := h.RecordCost(h.ctx, id, thread.Cost{Turns: 1}, 1)
		if s == thread.Running {
			h.noError(err)
			continue
		}
		if rec := h.get(id); !errors.Is(err, thread.ErrSettled) || rec.Cost.Turns != 0 {
			h.Errorf("cost of a %s thread: %v, %+v", s, err, rec.Cost)
		}
	}
}

func stateProcess(h *harness) {
	for _, s := range thread.States() {
		id := h.inState(s)
		before := h.get(id)
		err := h.SetProcess(h.ctx, id, someProcess(77))
		after := h.get(id)
		switch {
		case !s.Terminal() && (err != nil || after.Process != someProcess(77)):
			h.Errorf("process of a %s thread: %v, %+v", s, err, after)
		case s.Terminal() && (!errors.Is(err, thread.ErrSettled) || !reflect.DeepEqual(before, after)):
			h.Errorf("process of a %s thread: %v, %+v", s, err, after)
		}
	}
}

// someProcess has every field that a process can have.
func someProcess(pid int) thread.Process {
	return thread.Process{PID: pid, Host: "host", Boot: "boot", PIDNamespace: "4026531836", Started: int64(pid) * 10}
}
