package storetest

import (
	"context"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var changesTests = []test{
	{"every commit is noticed", changesNoticed},
	{"milestones are noticed", milestonesNoticed},
	{"the channel ends with its context", changesEnd},
	{"the channel ends with the store", changesClose},
}

// changesNoticed has two listeners that follow a writer who waits for both
// after every commit. They look only when they are told to.
func changesNoticed(h *harness) {
	const commits, listeners = 50, 2
	id := h.running("d", "")
	seen := make(chan error)
	for range listeners {
		go func() {
			wake := h.Changes(h.ctx)
			for turn := 0; turn < commits; {
				rec, err := h.Get(h.ctx, id)
				for ; turn < rec.Cost.Turns; turn++ {
					seen <- err
				}
				if err != nil {
					seen <- err
					return
				}
				if turn < commits {
					<-wake // closed when the test gives up, and then Get fails
				}
			}
		}()
	}
	for turn := 1; turn <= commits; turn++ {
		h.noError(h.RecordCost(h.ctx, id, thread.Cost{Turns: turn}, 0))
		for range listeners {
			if err := <-seen; err != nil {
				h.Fatalf("commit %d was not noticed: %v", turn, err)
			}
		}
	}
}

// milestonesNoticed waits after each commit for the channel to tell. The first ones use up
// what the channel may tell beside them at its beginning.
func milestonesNoticed(h *harness) {
	id, other := h.running("d", ""), h.running("d", "")
	wake := h.Milestones(h.ctx)
	told := func(what string) {
		select {
		case <-wake:
		case <-h.ctx.Done():
			h.Fatalf("nobody is told of %s", what)
		}
	}
	for turn := range 10 {
		h.noError(h.Yield(h.ctx, id, turn%2 == 0))
		told("a slot")
	}
	h.end(id, thread.Completed)
	told("an end")
	_, err := h.RequestCancel(h.ctx, other, "", h.now)
	h.noError(err)
	told("a cancel")
	h.enqueued(0)
	told("a thread in the queue")
}

// drained waits until the channel is closed.
func (h *harness) drained(ch <-chan struct{}) {
	h.Helper()
	for {
		select {
		case _, open := <-ch:
			if !open {
				return
			}
		case <-h.ctx.Done():
			h.Fatal("the channel was not closed")
		}
	}
}

func changesEnd(h *harness) {
	other := h.Changes(h.ctx)
	ctx, cancel := context.WithCancel(h.ctx)
	ch := h.Changes(ctx)
	cancel()
	h.drained(ch)
	h.drained(h.Changes(ctx)) // it had ended before

	// The others go on, and so does a listener who comes after the last has left.
	h.register("d", "")
	<-other
	ctx, cancel = context.WithCancel(h.ctx)
	defer cancel()
	again := h.Changes(ctx)
	h.register("d", "")
	<-again
}

func changesClose(h *harness) {
	ch := h.Changes(h.ctx)
	h.noError(h.Close())
	h.drained(ch)
	h.drained(h.Changes(h.ctx))
	if _, err := h.Get(h.ctx, "x"); err == nil {
		h.Error("a closed store answers")
	}
	if _, _, err := h.Register(h.ctx, h.newThread("d", ""), claimNothing); err == nil {
		h.Error("a closed store registers")
	}
	h.noError(h.Close())
}
