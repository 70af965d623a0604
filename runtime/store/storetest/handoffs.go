package storetest

import (
	"errors"
	"reflect"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var handoffTests = []test{
	{"what a running thread is asked to hand over is kept", handoffKept},
	{"only threads that run are asked to hand over", handoffOfRunning},
	{"a successor is asked nothing", handoffOfSuccessor},
}

func handoffKept(h *harness) {
	id := h.running("d", "")
	if got, err := h.AskedHandoff(h.ctx, id); got != nil || err != nil || !h.get(id).HandoffAskedAt.IsZero() {
		h.Errorf("asked %+v, %v", got, err)
	}
	for i, summary := range []string{"", "it is half done"} {
		want := thread.HandoffRequest{By: "Ada", Summary: summary, At: h.now.Add(time.Duration(i) * time.Second)}
		h.noError(h.AskHandoff(h.ctx, id, want))
		got, err := h.AskedHandoff(h.ctx, id)
		if err != nil || got == nil || !reflect.DeepEqual(*got, want) || !h.get(id).HandoffAskedAt.Equal(want.At) {
			h.Errorf("asked %+v, %v; want %+v", got, err, want)
		}
	}
	if _, err := h.AskedHandoff(h.ctx, "nobody"); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("of an unknown thread: %v", err)
	}
}

func handoffOfRunning(h *harness) {
	for _, state := range thread.States() {
		err := h.AskHandoff(h.ctx, h.inState(state), thread.HandoffRequest{By: "Ada", At: h.now})
		if (err == nil) != (state == thread.Running) || err != nil && !errors.Is(err, thread.ErrSettled) {
			h.Errorf("a %s thread is asked: %v", state, err)
		}
	}
	stopped := h.running("d", "")
	_, err := h.RequestCancel(h.ctx, stopped, "", h.now)
	h.noError(err)
	if err := h.AskHandoff(h.ctx, stopped, thread.HandoffRequest{By: "Ada", At: h.now}); !errors.Is(err, thread.ErrSettled) {
		h.Errorf("one that is to stop is asked: %v", err)
	}
	if err := h.AskHandoff(h.ctx, "nobody", thread.HandoffRequest{By: "Ada", At: h.now}); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("an unknown thread is asked: %v", err)
	}
}

func handoffOfSuccessor(h *harness) {
	id := h.running("d", "")
	h.noError(h.AskHandoff(h.ctx, id, thread.HandoffRequest{By: "Ada", At: h.now}))
	next := h.successor(id, true)
	if rec := h.get(next); !rec.HandoffAskedAt.IsZero() {
		h.Errorf("the successor was asked at %v", rec.HandoffAskedAt)
	}
}
