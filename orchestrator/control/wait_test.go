package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// code is the code of an error as a model hears it.
func code(err error) tool.Code {
	if f, ok := errors.AsType[*tool.Fault](err); ok {
		return f.Code
	}
	return ""
}

func TestWait(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	first, second := s.start("idle", ""), s.start("idle", "")

	look, err := s.c.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{first, second, first}})
	s.noError(err)
	if look.Success || !slices.Equal(look.Pending, []thread.ID{first, second}) || len(look.Results) != 2 || look.Next == "" {
		s.Errorf("looked once: %+v", look)
	}

	// Two servers wait while the threads end: one for any, one for all.
	other := s.controller()
	anyOf, allOf := make(chan view.WaitResult, 1), make(chan view.WaitResult, 1)
	go func() { anyOf <- s.wait(s.c, WaitAny, first, second) }()
	go func() { allOf <- s.wait(other, WaitAll, first, second, second) }()
	s.order(second, "spend 4", "complete")
	if r := <-anyOf; !r.Success || !slices.Equal(r.Pending, []thread.ID{first}) || r.Results[second].Cost.Spend != 4 {
		s.Errorf("any: %+v", r)
	}
	s.order(first, "complete")
	if r := <-allOf; !r.Success || len(r.Pending) != 0 || r.Results[first].Result != "result of "+string(first) {
		s.Errorf("all: %+v", r)
	}

	dead := s.start("idle", "")
	s.noError(syscall.Kill(s.puppet(dead).pid, syscall.SIGKILL))
	if r := s.wait(other, WaitAny, dead, first); !r.Success { // first has completed
		s.Errorf("any with a dead one: %+v", r)
	}
	if r := s.wait(other, WaitAll, dead, first); r.Success || r.Results[dead].Error == "" {
		s.Errorf("all with a dead one: %+v", r)
	}
	for name, req := range map[string]WaitRequest{
		"nothing":      {},
		"unknown mode": {ThreadIDs: []thread.ID{first}, Mode: "some"},
		"unknown id":   {ThreadIDs: []thread.ID{"no/such"}, Timeout: giveUp},
	} {
		if _, err := s.c.Wait(s.ctx, req); code(err) != "bad_arguments" && code(err) != "not_found" {
			s.Errorf("%s: %v", name, err)
		}
	}
}

// TestWaitEndsWithItsCause: a waiting caller learns why the wait was broken off.
func TestWaitEndsWithItsCause(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.start("idle", "")
	ctx, cancel := context.WithCancelCause(s.ctx)
	ended := make(chan error, 1)
	looked := make(chan struct{})
	go func() {
		_, err := s.c.await(ctx, WaitRequest{ThreadIDs: []thread.ID{id}, Timeout: giveUp, Progress: func(p Progress) {
			if p.Total != 1 || p.Done != 0 {
				s.Errorf("progress %+v", p)
			}
			select {
			case looked <- struct{}{}:
			default:
			}
		}})
		ended <- err
	}()
	<-looked
	cancel(thread.ErrShutdown)
	if err := <-ended; !errors.Is(err, thread.ErrShutdown) {
		s.Errorf("ended with %v", err)
	}
}

// TestFollow starts synchronously: a shutdown of the server leaves the thread
// alone, the cancel of the call stops it, and time that is up does neither.
func TestFollow(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	tests := []struct {
		name  string
		cause error
		state thread.State
	}{
		{"shutdown", thread.ErrShutdown, thread.Running},
		{"cancelled", thread.ErrCancelled, thread.Cancelled},
		{"time is up", nil, thread.Running},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			ctx, cancel := context.WithCancelCause(s.ctx)
			defer cancel(nil)
			var wait float64
			if tt.cause != nil {
				wait = giveUp.Seconds()
			}
			answered := make(chan error, 1)
			go func() {
				got, err := Threads{s.c}.Start(ctx, action.Caller{}, action.StartRequest{
					Directive: "idle", WaitSeconds: &wait, Limits: map[string]float64{"spend": 0.3},
				})
				if started, ok := got.(view.Started); tt.cause == nil && (!ok || started.Status.Terminal() || started.Next == "") {
					s.Errorf("answered %+v", got)
				}
				answered <- err
			}()
			id := thread.NewID("idle", testTime, 1)
			if tt.cause != nil {
				s.order(id, "claim")
				cancel(tt.cause)
			}
			if err := <-answered; !errors.Is(err, tt.cause) {
				s.Errorf("answered with %v", err)
			}
			if tt.cause == nil {
				s.order(id, "claim")
			}
			s.wantState(tt.state, id)
		})
	}
}

func TestListAndStatus(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	var children []thread.ID
	for range 3 {
		children = append(children, s.start("work", root))
	}
	s.order(children[1], "complete")
	s.noError(syscall.Kill(s.puppet(children[2]).pid, syscall.SIGKILL))
	s.wait(s.c, WaitAll, children[1:]...)

	listed := func(req view.ListRequest) (all []thread.ID) {
		for {
			page, err := s.c.View.List(s.ctx, req)
			s.noError(err)
			for _, row := range page.Threads {
				all = append(all, row.ThreadID)
			}
			if page.NextCursor == "" {
				return all
			}
			req.Cursor = page.NextCursor
		}
	}
	for name, tt := range map[string]struct {
		req  view.ListRequest
		want []thread.ID // of one second, so by descending id
	}{
		"all, one a page":         {view.ListRequest{Limit: 1}, []thread.ID{children[2], children[1], children[0], root}},
		"children":                {view.ListRequest{Parent: root}, []thread.ID{children[2], children[1], children[0]}},
		"dead":                    {view.ListRequest{States: []thread.State{thread.Error}}, []thread.ID{children[2]}},
		"text":                    {view.ListRequest{Text: "DLE-"}, []thread.ID{root}},
		"text that is no pattern": {view.ListRequest{Text: "%"}, nil},
		"directive":               {view.ListRequest{Directive: "work", States: []thread.State{thread.Running}}, []thread.ID{children[0]}},
	} {
		if got := listed(tt.req); !slices.Equal(got, tt.want) {
			s.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	page, err := s.c.View.List(s.ctx, view.ListRequest{Limit: 1})
	s.noError(err)
	if _, err := s.c.View.List(s.ctx, view.ListRequest{Limit: 1, Text: "x", Cursor: page.NextCursor}); code(err) != "bad_arguments" {
		s.Errorf("cursor of another list: %v", err)
	}
	if _, err := s.c.View.List(s.ctx, view.ListRequest{States: []thread.State{"asleep"}}); code(err) != "bad_arguments" {
		s.Errorf("unknown state: %v", err)
	}

	status, err := s.c.View.Status(s.ctx, root)
	s.noError(err)
	if status.Status != thread.Running || fmt.Sprint(status.Children) != fmt.Sprint(listed(view.ListRequest{Parent: root})) ||
		status.Limits == nil || status.Limits.Spend != 1_000_000 || status.Name != "Work." {
		s.Errorf("status %+v", status)
	}
	dead, err := s.c.View.Status(s.ctx, children[2])
	if err != nil || dead.Problem == nil || dead.Problem.Signal != "SIGKILL" || dead.ParentID != root {
		s.Errorf("status of a dead thread %+v, %v", dead, err)
	}
	if page, err := s.c.View.ReadTranscript(s.ctx, view.TranscriptInput{ThreadID: children[2]}); err != nil || !page.AtEnd || page.Content == "" {
		s.Errorf("transcript %+v, %v", page, err)
	}
}

func TestAggregate(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	child := s.start("idle", root)
	grandchild := s.start("work", child)
	other := s.start("idle", "")
	s.order(grandchild, "spend 100", "complete")
	s.order(child, "spend 10", "complete")
	s.order(root, "spend 1")
	s.order(other, "spend 1000", "complete")
	s.wait(s.c, WaitAll, other)

	a, err := s.c.View.Aggregate(s.ctx, []thread.ID{grandchild, root, other, child, root})
	s.noError(err)
	want := view.Totals{
		Threads: 4, ByStatus: map[thread.State]int{thread.Running: 1, thread.Completed: 3},
		Cost: thread.Cost{Turns: 4, Spend: 1111}, TreeSpend: 1111,
	}
	if a.Success || fmt.Sprint(a.Totals) != fmt.Sprint(want) || len(a.Results) != 4 {
		s.Errorf("aggregate %+v, want %+v", a.Totals, want)
	}
	a, err = s.c.View.Aggregate(s.ctx, []thread.ID{child})
	if err != nil || !a.Success || a.Totals.Cost.Spend != 10 || a.Totals.TreeSpend != 110 {
		s.Errorf("aggregate %+v, %v", a, err)
	}
	s.wantTree(root, store.TreeSpend{Actual: 111, Threads: 3, Active: 1})
}

// TestDeathIsSettledByItsParent: nobody waits for the thread or looks at it.
func TestDeathIsSettledByItsParent(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.start("idle", "")
	changes := s.c.Threads.Store.Changes(s.ctx)
	s.noError(syscall.Kill(s.puppet(id).pid, syscall.SIGKILL))
	for !s.row(id).Status.Terminal() {
		select {
		case <-changes:
		case <-time.After(giveUp):
			s.Fatal("not settled")
		}
	}
	s.wantState(thread.Error, id)
}
