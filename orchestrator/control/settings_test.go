package control

import (
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/runtime/daily"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// counter counts what a loader reads and merges.
type counter struct {
	mu            sync.Mutex
	files, merges map[string]int
}

func countReads(c *Controller) *counter {
	n := &counter{files: map[string]int{}, merges: map[string]int{}}
	add := func(to map[string]int) func(string) {
		return func(name string) {
			n.mu.Lock()
			defer n.mu.Unlock()
			to[name]++
		}
	}
	c.Settings.Config.Seen = &config.Seen{File: add(n.files), Merged: add(n.merges)}
	return n
}

// take returns the counts, and begins anew.
func (n *counter) take() (files, merges map[string]int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	files, merges = maps.Clone(n.files), maps.Clone(n.merges)
	clear(n.files)
	clear(n.merges)
	return files, merges
}

// Each call reads each settings file at most once, and merges each kind once.
func TestSettingsAreReadOnceACall(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/hooks.yaml", "hooks: []\n")
	s.write("config/agent/resilience.yaml", "limits: {turns: 20}\n")
	s.write("config/agent/providers/scripted.yaml", "tiers: {fast: quick}\nallow_unpriced: true\n")
	s.c.Threads.Store = &daily.Store{Store: s.c.Threads.Store, Limit: func() (*thread.Micros, error) {
		return daily.LimitOf(s.c.Settings.Config.Read())
	}}
	n := countReads(s.c)
	var id thread.ID
	for name, call := range map[string]func() error{
		"plan": func() error {
			_, err := s.c.Planner.Preview(s.ctx, action.Caller{}, action.StartRequest{Directive: "work"})
			return err
		},
		"start": func() error {
			started, err := s.c.Start(s.ctx, action.Caller{Person: true}, action.StartRequest{Directive: "work"})
			id = started.ThreadID
			return err
		},
		"start of a client, in the background": func() error {
			_, err := Threads{s.c}.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", Async: true})
			return err
		},
		"start of a client that waits": func() error {
			_, err := Threads{s.c}.Start(s.ctx, action.Caller{Hold: time.Millisecond}, action.StartRequest{Directive: "work"})
			return err
		},
	} {
		n.take()
		s.noError(call())
		files, merges := n.take()
		for path, times := range files {
			if times != 1 {
				t.Errorf("%s reads %s %d times", name, path, times)
			}
		}
		for kind, times := range merges {
			if times != 1 {
				t.Errorf("%s merges %s %d times", name, kind, times)
			}
		}
		if len(files) == 0 || merges["agent/agent.yaml"] != 1 || merges["agent/resilience.yaml"] != 1 {
			t.Errorf("%s: files %v, merges %v", name, files, merges)
		}
	}
	s.order(id, "claim", "complete")
	for name, call := range map[string]func() error{
		"resume": func() error {
			_, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: id, Message: "go on"})
			_ = err // it has said nothing; the settings are read before that is found
			return nil
		},
		"verify": func() error { _, err := s.c.Verify.CheckAll(s.ctx, func(int) {}); return err },
	} {
		n.take()
		s.noError(call())
		_, merges := n.take()
		for kind, times := range merges {
			if times != 1 {
				t.Errorf("%s merges %s %d times", name, kind, times)
			}
		}
	}
}

// A start goes by one version of each file, whatever becomes of it meanwhile; the
// next start goes by the new one.
func TestSettingsChangeDuringAStart(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/agent.yaml", "provider: {default: scripted}\nthreads: {max_running: 9}\n")
	first := s.start("work", "")
	s.c.Threads.Crashpoints = func(at thread.Crashpoint) {
		if at == scheduler.CrashRegistered {
			s.write("config/agent/agent.yaml", "provider: {default: scripted}\nthreads: {max_running: 1}\n")
		}
	}
	second, err := s.c.Start(s.ctx, action.Caller{Person: true}, action.StartRequest{Directive: "work"})
	s.noError(err)
	s.c.Threads.Crashpoints = nil
	if second.Queued {
		t.Error("the start went by two versions of agent.yaml")
	}
	third, err := s.c.Start(s.ctx, action.Caller{Person: true}, action.StartRequest{Directive: "work"})
	s.noError(err)
	if !third.Queued {
		t.Errorf("the next start did not read the new version: %+v", third)
	}
	for _, id := range []thread.ID{first, second.ThreadID, third.ThreadID} {
		_, err := s.c.Stop.Kill(s.ctx, id)
		s.noError(err)
	}
}

// A thread that has been queued goes by the settings that hold when it is
// launched, and its thread.json names those.
func TestSettingsOfAQueuedThread(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/agent.yaml", "provider: {default: scripted}\nthreads: {max_running: 1}\n")
	first := s.start("work", "")
	second, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work"})
	s.noError(err)
	names := func(id thread.ID) string {
		meta, err := s.c.Threads.OwnMeta(id)
		s.noError(err)
		return meta.SettingsHash
	}
	before := config.HashDecided(s.c.Settings.Begin().Handed(t.Context(), "", nil).Settings)
	if !second.Queued || names(first) != before || names(second.ThreadID) != before {
		t.Errorf("queued %t; decided %s, thread.json name %s and %s", second.Queued, before, names(first), names(second.ThreadID))
	}
	s.write("config/agent/resilience.yaml", "limits: {turns: 5}\n")
	s.order(first, "complete")
	s.noError(s.c.Queue.Dispatch(s.ctx))
	s.order(second.ThreadID, "claim")
	after := config.HashDecided(s.c.Settings.Begin().Handed(t.Context(), "", nil).Settings)
	if after == before || names(second.ThreadID) != after {
		t.Errorf("decided %s, then %s; thread.json names %s", before, after, names(second.ThreadID))
	}
}

// Where settings cannot be decided, as a file of hooks is refused, the process of a
// thread reads them itself and says what is wrong.
func TestSettingsThatCannotBeDecided(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/hooks.yaml", "hooks: [{id: x, event: error, action: {primary: none}}]\n")
	c := s.c.Settings.Begin()
	meta := thread.Meta{SettingsHash: "of before"}
	c.Seal(&meta)
	if handed := c.Handed(t.Context(), "", nil); handed.Settings != nil || meta.SettingsHash != "" {
		t.Errorf("handed %q, sealed %q", handed.Settings, meta.SettingsHash)
	}
}
