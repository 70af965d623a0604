package control

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/fanout"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// provide adds a provider of the user's, with a model m.
func (s *scene) provide(name, text string) {
	s.Helper()
	folder := filepath.Join(rootsOf(s.project).User, ".ai", "config", "agent", "providers")
	s.noError(os.MkdirAll(folder, 0o700))
	s.noError(os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(text+
		"tool_use: native\ntiers: {fast: m, general: m}\nmodels: {m: {context_window: 200000, max_output_tokens: 8192, input: 1.0, output: 5.0}}\n"), 0o600))
}

// comesAndGoes adds a provider on this machine, called here, and returns how it is made to
// go away and to come back.
func (s *scene) comesAndGoes() (there func(bool)) {
	var away atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
	}))
	s.Cleanup(server.Close)
	s.provide("here", "api: openai\nbase_url: "+server.URL+"/v1\nlocal: true\n")
	return func(is bool) { away.Store(!is) }
}

// locked adds a provider whose key a command gives while it is not locked. Each run of the
// command adds a line to a file.
func (s *scene) locked(name string) (unlock func(bool), runs func() int) {
	s.Helper()
	key := filepath.Join(filepath.Dir(s.project), name)
	s.provide(name, "api: scripted\nscript: agent/scripts/demo.yaml\napi_key_env: LOCKED_KEY\n"+
		"api_key_command: [/bin/sh, -c, 'echo run >>"+key+".runs; cat "+key+"']\n")
	unlock = func(is bool) {
		s.noError(os.RemoveAll(key))
		if is {
			s.noError(os.WriteFile(key, []byte("key\n"), 0o600))
		}
	}
	unlock(true)
	return unlock, func() int {
		text, _ := os.ReadFile(key + ".runs")
		return strings.Count(string(text), "run")
	}
}

// TestMapProviderAway has the provider of a set go away for a while: an item that waits stays
// waiting, is given to no other provider, and starts when it is back. The answer says why it
// waits, and the set can be cancelled.
func TestMapProviderAway(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		order string // of providers
		there func(*scene) func(bool)
		why   string
	}{
		"a server on this machine":              {"[here]", (*scene).comesAndGoes, "here cannot be used: it does not answer"},
		"a server, and there is another vendor": {"[here, scripted]", (*scene).comesAndGoes, "here cannot be used: it does not answer"},
		"a command that gives the key": {"[locked]", func(s *scene) func(bool) {
			unlock, _ := s.locked("locked")
			return unlock
		}, "the key of model provider locked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			there := tt.there(s)
			s.write("config/agent/agent.yaml", "provider: {order: "+tt.order+"}\nthreads: {soft_stop_seconds: 1, term_seconds: 0.2, orphans: cancel}\n")
			s.write("directives/item.md", fmt.Sprintf(itemDirective, ""))
			set := s.begunSet(ofItems(numbered(0, 3), 1))
			first := s.workers(set)[0]
			s.order(first, "claim")
			there(false)
			s.order(first, "say hello", "complete")
			s.gone(first)
			away := s.controller()
			s.noError(away.Queue.Dispatch(s.ctx))
			a := s.mapped(away, atTerminal, MapRequest{Set: set, Async: true})
			s.wantCounts(a, fanout.Counts{Items: 3, Completed: 1, Waiting: 2})
			if !strings.Contains(a.Next, tt.why) || !strings.Contains(a.Next, "cancel_thread") {
				t.Errorf("next: %q", a.Next)
			}
			status, err := away.View.Status(s.ctx, set)
			if s.noError(err); !strings.Contains(status.ItemsWait, tt.why) || !strings.Contains(status.ItemsWait, "cancel the set") {
				t.Errorf("status: %q", status.ItemsWait)
			}
			there(true)
			s.noError(s.controller().Queue.Dispatch(s.ctx))
			second := s.workers(set)
			for ; len(second) == 0 && s.ctx.Err() == nil; second = s.workers(set) { // the look before may be about to find it away
				s.noError(s.controller().Queue.Dispatch(s.ctx))
			}
			if len(second) != 1 {
				t.Fatalf("%v work", second)
			}
			if got, want := s.row(second[0]).Model, s.row(first).Model; got != want {
				t.Errorf("the model is %s, was %s", got, want)
			}
			s.order(second[0], "claim")
			there(false)
			s.order(second[0], "say hello", "complete")
			s.gone(second[0])
			stopped, err := s.c.Stop.Cancel(s.ctx, set)
			if s.noError(err); !stopped.Success || s.row(set).Status != thread.Cancelled {
				t.Errorf("stopped %+v", stopped)
			}
		})
	}
}

// TestMapProviderRemoved takes the provider of a set out of the settings: a caller that looks at
// the set, or waits for it, is told what it waits for and what can be done, until it is back.
func TestMapProviderRemoved(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.provide("theirs", "api: scripted\nscript: agent/scripts/demo.yaml\n")
	s.write("config/agent/agent.yaml", "provider: {order: [theirs, scripted]}\n")
	s.write("directives/item.md", fmt.Sprintf(itemDirective, ""))
	set := s.begunSet(ofItems(numbered(0, 2), 1))
	if status, err := s.controller().View.Status(s.ctx, set); err != nil || status.ItemsWait != "" {
		t.Errorf("while one works: %q, %v", status.ItemsWait, err)
	}
	settings := filepath.Join(rootsOf(s.project).User, ".ai", "config", "agent", "providers", "theirs.yaml")
	s.noError(os.Rename(settings, settings+".away"))
	s.write("config/agent/agent.yaml", "provider: {order: [scripted]}\n")
	first := s.workers(set)[0]
	s.order(first, "claim", "say hello", "complete")
	s.gone(first)
	c := s.controller()
	s.noError(c.Queue.Dispatch(s.ctx))
	why := []string{`no usable provider has the model "theirs/m"`, "the settings have the provider theirs again", "cancel the set"}
	status, err := c.View.Status(s.ctx, set)
	s.noError(err)
	waited, err := c.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{set}, Timeout: time.Millisecond})
	s.noError(err)
	a := s.mapped(c, atTerminal, MapRequest{Set: set, Async: true})
	for _, want := range why {
		for where, said := range map[string]string{"status": status.ItemsWait, "wait": waited.Next, "map": a.Next} {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q, without %q", where, said, want)
			}
		}
	}
	s.noError(os.Rename(settings+".away", settings))
	if status, err := s.controller().View.Status(s.ctx, set); err != nil || status.ItemsWait != "" {
		t.Errorf("when it is back: %q, %v", status.ItemsWait, err)
	}
	_, err = s.c.Stop.Cancel(s.ctx, set)
	s.noError(err)
}

// TestRetryProviderAway: threads whose provider cannot be asked now keep no other waiting,
// however many they are, and its key is asked for once.
func TestRetryProviderAway(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := failures(t)
	unlock, runs := s.locked("locked")
	const others = 21 // one more than a pass makes attempts
	for range others {
		started, err := s.c.Start(s.ctx, atTerminal, action.StartRequest{Directive: "again", Model: "locked/m"})
		s.noError(err)
		s.order(started.ThreadID, "claim")
		s.die(started.ThreadID, 3*time.Hour)
	}
	id := s.start("again", "")
	s.die(id, 2*time.Hour)
	unlock(false)
	before, c := runs(), s.controller()
	if err := c.Queue.Dispatch(s.ctx); err == nil || !strings.Contains(err.Error(), "the key of model provider locked") {
		t.Errorf("the pass says %v", err)
	}
	if rec := s.row(id); rec.AwaitsRetry() {
		t.Error("the thread waits behind those of another provider")
	}
	if n := runs() - before; n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	if list, _, err := c.Threads.Store.DueRetries(s.ctx, testTime, 100); err != nil || len(list) != others {
		t.Errorf("%d attempts are due (%v), want %d", len(list), err, others)
	}
}

// TestWaitBesideCommand: how long a command takes that gives a key is nothing to a wait, which
// ends when its time is up and tells each second how things stand.
func TestWaitBesideCommand(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := failures(t)
	hold := filepath.Join(filepath.Dir(s.project), "hold")
	s.noError(syscall.Mkfifo(hold, 0o600))
	unlock, runs := s.locked("locked")
	started, err := s.c.Start(s.ctx, atTerminal, action.StartRequest{Directive: "again", Model: "locked/m"})
	s.noError(err)
	s.order(started.ThreadID, "claim")
	s.die(started.ThreadID, 2*time.Hour)
	unlock(false)
	key := filepath.Join(filepath.Dir(s.project), "locked")
	s.noError(os.Symlink(hold, key)) // the command waits for who writes there
	before, c := runs(), s.controller()
	told := 0
	r, err := c.Wait(s.ctx, WaitRequest{
		ThreadIDs: []thread.ID{started.ThreadID}, Timeout: 1500 * time.Millisecond, Progress: func(Progress) { told++ },
	})
	if s.noError(err); len(r.Pending) != 1 || told == 0 {
		t.Errorf("told %d times, then %+v", told, r)
	}
	if n := runs() - before; n != 1 {
		t.Fatalf("the command ran %d times", n)
	}
	s.noError(os.Remove(key)) // and so it waits still
	s.noError(c.Close())
}
