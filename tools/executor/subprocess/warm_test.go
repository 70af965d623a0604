package subprocess

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench calls a warm tool, which is a script of the shell.
type bench struct {
	*testing.T
	workers workers
	plan    *chain.Plan
	script  string
	started int
}

func newBench(t *testing.T, script string) *bench {
	t.Helper()
	b := &bench{T: t, script: script, plan: &chain.Plan{
		Chain: &chain.Chain{Elements: []chain.Element{{Found: &resolve.Found{Entry: resolve.Entry{ID: "a/t"}}}}},
		Call:  tool.Env{ThreadID: "a/b-1"},
	}}
	t.Cleanup(func() { _ = b.workers.close() })
	return b
}

func (b *bench) command() process.Command {
	return process.Command{Path: "/bin/sh", Args: []string{"-c", b.script}, Env: []string{"PATH=/usr/bin:/bin"}, Stdin: []byte("x"), Timeout: time.Minute}
}

// confine counts the processes that are about to start.
func (b *bench) confine(*process.Command) error {
	b.started++
	return nil
}

func (b *bench) call() (any, error) {
	return b.workers.call(b.Context(), b.plan, b.command(), b.confine)
}

// next reads a call of [bench], which is one byte behind its length.
const next = `dd bs=1 count=5 of=/dev/null 2>/dev/null; `

// A call that has found its worker, and gets to it after the workers were closed, starts
// no process.
func TestNoProcessAfterClose(t *testing.T) {
	t.Parallel()
	b := newBench(t, next+`printf '\000\000\000\014{"result":1}'; exec sleep 3600`)
	one, err := b.workers.of(b.plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.workers.close(); err != nil {
		t.Fatal(err)
	}
	err = one.ready(b.plan, b.command(), b.confine)
	if one.peer != nil {
		one.peer.Kill()
	}
	if f := tool.AsFault(err); err == nil || f.Code != tool.CodeCancelled || b.started != 0 {
		t.Errorf("%d processes were started; %v", b.started, err)
	}
}

// A failure tells what this call wrote to standard error, and nothing that an earlier
// call of the same process did.
func TestDiagnosticsOfOneCall(t *testing.T) {
	t.Parallel()
	b := newBench(t, next+`echo first >&2; printf '\000\000\000\014{"result":1}'
`+next+`echo second >&2; printf '\000\000\000\016{"error":"no"}'
`+next+`echo third >&2; exit 3`)
	if result, err := b.call(); err != nil || result == nil {
		t.Fatal(result, err)
	}
	for _, want := range []string{"second", "third"} {
		_, err := b.call()
		if told, _ := tool.AsFault(err).Details["stderr"].(string); told != want {
			t.Errorf("the failure tells %q, want %q; %v", told, want, err)
		}
	}
	if b.started != 1 {
		t.Errorf("%d processes", b.started)
	}
}

// A call that is cancelled while it waits for an earlier one of the same process ends
// then, and not with the earlier one.
func TestCancelledWhileItWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t, next+`exec sleep 3600`)
	one, err := b.workers.of(b.plan)
	if err != nil {
		t.Fatal(err)
	}
	one.turn <- struct{}{}
	defer func() { <-one.turn }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.workers.call(ctx, b.plan, b.command(), b.confine)
	if f := tool.AsFault(err); err == nil || f.Code != tool.CodeCancelled || b.started != 0 {
		t.Errorf("%d processes were started; %v", b.started, err)
	}
}
