package storetest

import (
	"reflect"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var censusTests = []test{
	{"threads are counted by how they stand", censusCounts},
	{"what is answered, or asked by a thread that has ended, is not open", censusQuestions},
}

func wantCensus(h *harness, want store.Counts) {
	h.Helper()
	got, err := h.Census(h.ctx)
	h.noError(err)
	if !reflect.DeepEqual(got, want) {
		h.Errorf("census\n%+v, want\n%+v", got, want)
	}
}

func censusCounts(h *harness) {
	wantCensus(h, store.Counts{})
	for i, state := range thread.States() {
		for range i + 1 {
			h.inState(state)
		}
	}
	waits := h.running("waits", "")
	h.noError(h.Yield(h.ctx, waits, true))
	for i := range 2 {
		_, err := h.Enqueue(h.ctx, h.register("queued", ""), 1, h.now.Add(time.Duration(i)*time.Second))
		h.noError(err)
	}
	h.apply(h.finished(h.enqueued(1).ThreadID, thread.Cancelled)) // it queues no more
	wantCensus(h, store.Counts{
		Created: 3, Running: 3, Queued: 1, QueuedSince: h.now.Add(time.Second), Yielded: 1,
	})
}

func censusQuestions(h *harness) {
	first, second := h.running("d", ""), h.running("d", "")
	h.ask(h.question("q1", first))
	later := h.question("q2", second)
	later.AskedAt = h.now.Add(time.Second)
	h.ask(later)
	hook := h.question("q3", second)
	hook.Kind = thread.AskHook
	h.ask(hook)
	wantCensus(h, store.Counts{Running: 2, Questions: []store.OpenQuestions{
		{Kind: thread.AskHook, Count: 1, Since: h.now}, {Kind: thread.AskLimit, Count: 2, Since: h.now},
	}})
	_, err := h.Answer(h.ctx, "q1", thread.Answer{Decision: thread.Stop, By: "someone", At: h.now})
	h.noError(err)
	_, err = h.Answer(h.ctx, "q3", thread.Answer{Decision: thread.Stop, By: "someone", At: h.now})
	h.noError(err)
	wantCensus(h, store.Counts{Running: 2, Questions: []store.OpenQuestions{
		{Kind: thread.AskLimit, Count: 1, Since: h.now.Add(time.Second)},
	}})
	h.apply(h.finished(second, thread.Cancelled))
	wantCensus(h, store.Counts{Running: 1})
}
