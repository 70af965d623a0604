package control

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/secret"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const secretDirective = "```xml\n" + `<directive name="secretive" version="1.0.0">
  <metadata><limits spend="0.01" /></metadata>
  <inputs><input name="token" secret="true" required="true" /><input name="note" /></inputs>
</directive>` + "\n```\n\nUse {input:token}.\n"

// secretive is a request for a thread with a secret.
func secretive(value string) action.StartRequest {
	return action.StartRequest{Directive: "secretive", Inputs: map[string]any{"token": value}}
}

// TestSecretsInPlaceOnly: thread.json and plans have placeholders.
func TestSecretsInPlaceOnly(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("directives/secretive.md", secretDirective)
	const value = "never to be seen"
	plan, err := s.c.Planner.Preview(s.ctx, action.Caller{}, secretive(value))
	s.noError(err)
	if got := plan.Plan.Inputs["token"]; !reflect.DeepEqual(got, map[string]any{"secret": true}) {
		t.Errorf("the plan shows %v", got)
	}
	started, err := s.c.Start(s.ctx, action.Caller{}, secretive(value))
	s.noError(err)
	s.puppet(started.ThreadID)
	meta, err := os.ReadFile(s.folder(started.ThreadID).Meta())
	s.noError(err)
	if text := string(meta); strings.Contains(text, value) || !strings.Contains(text, `"token":"{secret:token}"`) {
		t.Errorf("thread.json is %s", text)
	}
	s.order(started.ThreadID, "complete")
	// Its key names it for good, and nobody needs the value for that.
	keyed := secretive(value)
	keyed.RequestKey = "once"
	first, err := s.c.Start(s.ctx, action.Caller{}, keyed)
	s.noError(err)
	keyed.Inputs = nil
	again, err := s.c.Start(s.ctx, action.Caller{}, keyed)
	if err != nil || again.ThreadID != first.ThreadID || !again.Existing {
		t.Errorf("again %+v, %v", again, err)
	}
}

// wantNoSlot checks the refusal of a thread that cannot be queued.
func (s *scene) wantNoSlot(err error) {
	s.Helper()
	f, ok := errors.AsType[*tool.Fault](err)
	if !ok || f.Code != tool.CodeUnsupported || !strings.Contains(f.Message, "cannot wait for its turn") || f.Hint == "" {
		s.Errorf("got %v", err)
	}
}

// TestSecretsDoNotWait: a thread with secrets is refused where it would have to
// be queued, before it is registered.
func TestSecretsDoNotWait(t *testing.T) {
	t.Parallel()
	s := narrow(t, 1)
	s.write("directives/secretive.md", secretDirective)
	running := s.start("idle", "")
	_, err := s.c.Start(s.ctx, action.Caller{}, secretive("never to be seen"))
	s.wantNoSlot(err)
	if rows, _, err := s.c.Threads.Store.List(s.ctx, store.Filter{Directive: "secretive"}); err != nil || len(rows) > 0 {
		t.Errorf("registered all the same: %v, %v", rows, err)
	}
	s.order(running, "complete")
	s.wait(s.c, WaitAll, running)
	started, err := s.c.Start(s.ctx, action.Caller{}, secretive("never to be seen"))
	s.noError(err)
	s.puppet(started.ThreadID)
}

// TestSecretsLoseTheSlot: when somebody takes the last slot just before, the
// thread is there already, and is settled.
func TestSecretsLoseTheSlot(t *testing.T) {
	t.Parallel()
	s := narrow(t, 1)
	s.write("directives/secretive.md", secretDirective)
	c := s.controller()
	c.Threads.Crashpoints = func(point thread.Crashpoint) {
		if point == scheduler.CrashPrepared {
			s.begin("idle", "")
		}
	}
	_, err := c.Start(s.ctx, action.Caller{}, secretive("never to be seen"))
	s.wantNoSlot(err)
	rows, _, err := s.c.Threads.Store.List(s.ctx, store.Filter{Directive: "secretive"})
	s.noError(err)
	if len(rows) != 1 || rows[0].Status != thread.Error || !strings.Contains(rows[0].Outcome.Error.Message, "cannot wait for its turn") {
		t.Fatalf("rows %+v", rows)
	}
	s.wantLoad(1, 0)
	s.wantTree(rows[0].ThreadID, store.TreeSpend{Threads: 1})
}

// The start that a model asks for gets the secrets of its thread.
func TestSecretsOfTheCaller(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("directives/secretive.md", secretDirective)
	vault := secret.New(map[string]string{"token": "the-value"})
	p, err := s.c.Planner.In(s.c.Settings.Begin()).Start(s.ctx, action.Caller{Secrets: vault}, secretive("{secret:token}"))
	if err != nil || p.Secrets["token"] != "the-value" || p.Inputs["token"] != "{secret:token}" {
		t.Errorf("plan %+v, %v", p, err)
	}
}

// workerless is a fleet of which nobody takes what is queued.
type workerless struct{ threads.Fleet }

func (workerless) NewRun() (thread.Run, func())               { return thread.NewRun(), func() {} }
func (workerless) Room(context.Context) (func(), bool)        { return nil, false }
func (workerless) Providers(context.Context) ([]string, bool) { return nil, false }
func (workerless) NoWorker(_ context.Context, rec thread.Record) string {
	return "no worker takes " + string(rec.ThreadID)
}

// TestSecretsBehindTheQueue: a thread with secrets that is refused because others are queued is
// told which, and why that waits.
func TestSecretsBehindTheQueue(t *testing.T) {
	t.Parallel()
	s := narrow(t, 2)
	s.write("directives/secretive.md", secretDirective)
	s.c.Threads.Fleet = workerless{}
	waits := s.begin("idle", "")
	_, err := s.c.Start(s.ctx, action.Caller{}, secretive("never to be seen"))
	s.wantNoSlot(err)
	f, _ := errors.AsType[*tool.Fault](err)
	if want := "1 queued before it (first " + string(waits.ThreadID) + ")"; f == nil || !strings.Contains(f.Message, want) || !strings.Contains(f.Hint, "no worker takes "+string(waits.ThreadID)) {
		t.Errorf("it says %v, want %q", err, want)
	}
}
