package control

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// A wait in which everything pending waits for an answer is over at once, whatever
// time it has; one that knows the questions and asks for time waits for it. Nothing
// answers here, so one that is not over at once would end with the test's time.
func TestWaitInWhichAllAsk(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	first, second := s.start("idle", ""), s.start("idle", "")
	q := s.asks(first)
	model := WaitRequest{ThreadIDs: []thread.ID{first, second}, Timeout: 50 * time.Millisecond, Caller: "a model"}
	r, err := s.c.Wait(s.ctx, model)
	s.noError(err)
	if len(r.Pending) != 2 || len(r.Waiting) != 1 {
		t.Errorf("one asks and one works: %+v", r)
	}
	model.Timeout = giveUp
	s.asks(second)
	for range 2 {
		r, err := s.c.Wait(s.ctx, model)
		s.noError(err)
		if len(r.Pending) != 2 || len(r.Waiting) != 2 || !strings.Contains(r.Next, "approve_thread") {
			t.Errorf("all ask: %+v", r)
		}
	}
	patient := model
	patient.Patient, patient.Caller = true, "another model"
	r, err = s.c.Wait(s.ctx, patient)
	s.noError(err)
	if len(r.Waiting) != 2 {
		t.Errorf("a patient one that knows nothing yet: %+v", r)
	}
	patient.Mode = WaitAny
	answered := make(chan view.WaitResult, 1)
	go func() {
		r, _ := s.c.Wait(s.ctx, patient)
		answered <- r
	}()
	_, err = s.c.Approve(s.ctx, ApproveRequest{ThreadID: first, Decision: thread.Stop, By: "somebody"})
	s.noError(err)
	s.order(first, "complete")
	if r := <-answered; !slices.Equal(r.Pending, []thread.ID{second}) || s.answerTo(q) == nil {
		t.Errorf("a patient one: %+v", r)
	}
	s.order(second, "complete")
}

// decidedMeanwhile is a store in which every question is decided right after the first
// look at those that are open, as one is whose deadline has come.
type decidedMeanwhile struct {
	store.Store
	looks atomic.Int32
}

func (d *decidedMeanwhile) Questions(ctx context.Context, f store.QuestionFilter) ([]thread.Question, error) {
	if d.looks.Add(1) > 1 {
		return nil, nil
	}
	return d.Store.Questions(ctx, f)
}

// A wait that a question has ended tells that question, though it is decided meanwhile:
// pending without a question means that a thread works.
func TestWaitTellsWhatEndedIt(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.start("idle", "")
	s.asks(id)
	s.c.Threads.Store = &decidedMeanwhile{Store: s.c.Threads.Store}
	r, err := s.c.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{id}, Timeout: giveUp, Caller: "a model"})
	s.noError(err)
	if len(r.Pending) != 1 || len(r.Waiting) != 1 || !strings.Contains(r.Next, "approve_thread") {
		t.Errorf("%+v", r)
	}
	s.order(id, "complete")
}

// While the person is asked a wait goes on; when they put the question away it is
// over.
func TestWaitWhileThePersonIsAsked(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	s.asks(root)
	asked := make(chan struct{})
	leave := make(chan struct{})
	done := make(chan view.WaitResult, 1)
	go func() {
		r, _ := s.c.Wait(s.ctx, WaitRequest{
			ThreadIDs: []thread.ID{root}, Timeout: giveUp, Caller: "a model",
			Ask: func(context.Context, thread.Question) (thread.Answer, error) {
				close(asked)
				<-leave
				return thread.Answer{}, action.ErrNobodyToAsk
			},
		})
		done <- r
	}()
	<-asked
	select {
	case r := <-done:
		t.Fatalf("over while the person is asked: %+v", r)
	default:
	}
	close(leave)
	if r := <-done; len(r.Pending) != 1 || len(r.Waiting) != 1 {
		t.Errorf("put away: %+v", r)
	}
	s.order(root, "complete")
}

// One unknown id among several is a result that names the nearest; alone it is the
// failure of the call.
func TestUnknownIDs(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	first, second := s.start("idle", ""), s.start("idle", "")
	s.order(first, "complete")
	s.order(second, "complete")
	slip := first[:len(first)-1] + "x"
	r := s.wait(s.c, WaitAll, first, slip, second)
	if r.Success || len(r.Pending) != 0 || len(r.Results) != 3 || r.States[slip] != threads.NotFound || r.States[first] != thread.Completed {
		t.Errorf("waited: %+v", r)
	}
	entry := r.Results[slip]
	if entry.Status != threads.NotFound || !strings.Contains(entry.Error, string(slip)) || !slices.Contains(entry.Nearest, first) {
		t.Errorf("the entry: %+v", entry)
	}
	if r := s.wait(s.c, WaitAny, slip, second); !r.Success {
		t.Errorf("any: %+v", r)
	}
	a, err := s.c.View.Aggregate(s.ctx, []thread.ID{slip, first})
	if err != nil || a.Success || a.Totals.Threads != 1 || a.Results[slip].Status != threads.NotFound {
		t.Errorf("aggregate: %+v, %v", a, err)
	}
	stopped, err := s.c.Stop.Cancel(s.ctx, slip, second, first)
	if err != nil || stopped.Success || stopped.ThreadID != "" || len(stopped.Receipts) != 3 {
		t.Errorf("cancel: %+v, %v", stopped, err)
	}
	if r := stopped.Receipts[2]; r.ThreadID != slip || r.Status != threads.NotFound || !slices.Contains(r.Nearest, first) {
		t.Errorf("the receipt: %+v", r)
	}
	for name, call := range map[string]func(ids ...thread.ID) error{
		"wait":      func(ids ...thread.ID) error { _, err := s.c.Wait(s.ctx, WaitRequest{ThreadIDs: ids}); return err },
		"aggregate": func(ids ...thread.ID) error { _, err := s.c.View.Aggregate(s.ctx, ids); return err },
		"status":    func(ids ...thread.ID) error { _, err := s.c.View.Status(s.ctx, ids[0]); return err },
		"cancel":    func(ids ...thread.ID) error { _, err := s.c.Stop.Cancel(s.ctx, ids...); return err },
		"read": func(ids ...thread.ID) error {
			_, err := s.c.View.ReadTranscript(s.ctx, view.TranscriptInput{ThreadID: ids[0]})
			return err
		},
	} {
		for _, ids := range [][]thread.ID{{slip}, {slip, slip + "y"}} {
			f := threads.Fault(call(ids...))
			near, _ := f.Details["nearest_ids"].([]string)
			if f.Code != tool.CodeNotFound || !slices.Contains(near, string(first)) {
				t.Errorf("%s %v: %+v", name, ids, f)
			}
		}
	}
}
