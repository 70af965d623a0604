package control

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestFailedStartNeverRuns: a start that is answered with an error leaves no thread
// that somebody starts later, whatever could not be written at which step. Where the
// disk takes the outcome later, the files say it then.
func TestFailedStartNeverRuns(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	files := map[string]func(folder.Folder) string{
		"thread.log": folder.Folder.Log, "transcript.jsonl": folder.Folder.Transcript, "thread.json": folder.Folder.Meta,
	}
	for _, point := range []thread.Crashpoint{scheduler.CrashClaimed, scheduler.CrashRegistered, scheduler.CrashPrepared, scheduler.CrashDescribed, scheduler.CrashQueued} {
		for _, spoiled := range [][]string{{"thread.log"}, {"thread.log", "transcript.jsonl"}, {"thread.log", "thread.json"}, {"thread.log", "transcript.jsonl", "thread.json"}} {
			s := newSignedScene(t)
			id := thread.NewID("idle", testTime, 1)
			dir := s.folder(id)
			s.c.Threads.Crashpoints = func(at thread.Crashpoint) {
				if at != point {
					return
				}
				for _, name := range spoiled {
					s.noError(os.RemoveAll(files[name](dir)))
					s.noError(os.MkdirAll(files[name](dir), 0o700))
				}
			}
			_, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "idle"})
			if err == nil {
				t.Fatalf("%s, %v: started", point, spoiled)
			}
			s.c.Threads.Crashpoints = nil
			for _, name := range spoiled { // the disk is well again
				s.noError(os.Remove(files[name](dir)))
			}
			if _, err := s.c.Threads.Sweep(s.ctx); err != nil {
				t.Errorf("%s, %v: sweep: %v", point, spoiled, err)
			}
			s.noError(s.c.Queue.Dispatch(s.ctx))
			rec := s.row(id)
			if rec.Status != thread.Error || rec.PID != 0 || rec.Cost.Turns != 0 {
				t.Errorf("%s, %v: %s, pid %d, %+v (the caller heard: %v)", point, spoiled, rec.Status, rec.PID, rec.Outcome, tool.AsFault(err))
			}
			if active, err := s.c.Threads.Store.Active(s.ctx); err != nil || len(active) != 0 {
				t.Errorf("%s, %v: %d budgets are active, %v", point, spoiled, len(active), err)
			}
			if v := s.verify(id); !v.Verified && !slices.Contains(spoiled, "thread.json") {
				t.Errorf("%s, %v: does not verify: %+v", point, spoiled, v.Findings)
			}
		}
	}
}

// deaf is a store that takes no outcome.
type deaf struct{ store.Store }

func (d deaf) Runner(id thread.ID, run thread.Run) store.Runner {
	return deafRunner{d.Store.Runner(id, run)}
}

type deafRunner struct{ store.Runner }

func (deafRunner) Apply(context.Context, store.Change) (thread.Record, error) {
	return thread.Record{}, errors.New("no space left on device")
}

// TestFailedStartWithoutARegistry: where not even the row takes the outcome of a
// failed start, the thread loses its thread.json, and is buried instead of started.
func TestFailedStartWithoutARegistry(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := thread.NewID("idle", testTime, 1)
	s.c.Threads.Crashpoints = func(at thread.Crashpoint) {
		if at == scheduler.CrashQueued {
			s.noError(os.MkdirAll(s.folder(id).Log(), 0o700))
		}
	}
	inner := s.c.Threads.Store
	s.c.Threads.Store = deaf{inner}
	if _, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "idle"}); err == nil {
		t.Fatal("started")
	}
	s.c.Threads.Crashpoints, s.c.Threads.Store = nil, inner
	s.noError(os.Remove(s.folder(id).Log()))
	if rec := s.row(id); rec.Status != thread.Created {
		t.Fatalf("the row took it: %+v", rec)
	}
	_, err := s.c.Threads.Sweep(s.ctx)
	s.noError(err)
	s.noError(s.c.Queue.Dispatch(s.ctx))
	if rec := s.row(id); rec.Status != thread.Error || rec.PID != 0 {
		t.Errorf("%s, pid %d, %+v", rec.Status, rec.PID, rec.Outcome)
	}
}
