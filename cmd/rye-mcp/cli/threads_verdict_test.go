package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/control"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The exit code of a wait follows from what its threads came to.
func TestWaitVerdict(t *testing.T) {
	t.Parallel()
	const a, b = thread.ID("a-1"), thread.ID("b-1")
	for _, tt := range []struct {
		name  string
		any   bool
		ended map[thread.ID]thread.State // the others still work
		code  int
		says  string
	}{
		{"all completed", false, map[thread.ID]thread.State{a: thread.Completed, b: thread.Completed}, exitOK, ""},
		{"one failed", false, map[thread.ID]thread.State{a: thread.Completed, b: thread.Error}, exitFailure, "b-1 did not complete: error"},
		{"time is up", false, map[thread.ID]thread.State{a: thread.Completed}, exitTimeout, "1 of 2 threads has not ended"},
		{"time is up, and one failed", false, map[thread.ID]thread.State{a: thread.Error}, exitTimeout, "1 of 2 threads has not ended"},
		{"one was enough", true, map[thread.ID]thread.State{a: thread.Completed}, exitOK, ""},
		{"the first one failed", true, map[thread.ID]thread.State{b: thread.Cancelled}, exitFailure, "b-1 did not complete: cancelled"},
		{"time is up before any", true, nil, exitTimeout, "2 of 2 threads have not ended"},
	} {
		ids := []thread.ID{a, b}
		r := view.WaitResult{Mode: control.WaitAll, Results: map[thread.ID]view.Result{}}
		if tt.any {
			r.Mode = control.WaitAny
		}
		completed := 0
		for _, id := range ids {
			state, ended := tt.ended[id]
			if !ended {
				r.Pending, state = append(r.Pending, id), thread.Running
			}
			if state == thread.Completed {
				completed++
			}
			r.Results[id] = view.Result{Status: state}
		}
		r.Success = completed == len(ids) || tt.any && completed > 0
		var said, nothing bytes.Buffer
		if code := codeOf(waitVerdict(System{Stderr: &said}, ids, r, false)); code != tt.code || !strings.Contains(said.String(), tt.says) {
			t.Errorf("%s: code %d, %q; want %d, %q", tt.name, code, said.String(), tt.code, tt.says)
		}
		if code := codeOf(waitVerdict(System{Stderr: &nothing}, ids, r, true)); code != tt.code || nothing.Len() > 0 {
			t.Errorf("%s, with --json: code %d, %q", tt.name, code, nothing.String())
		}
	}
}

func codeOf(err error) int {
	var exit exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	if err != nil {
		return -1
	}
	return exitOK
}

func TestStopVerdict(t *testing.T) {
	t.Parallel()
	ended, lives := stop.Stopped{Success: true, ThreadID: "a-1"}, stop.Stopped{ThreadID: "b-1"}
	var said bytes.Buffer
	if code := codeOf(stopVerdict(System{Stderr: &said}, []stop.Stopped{ended}, false)); code != exitOK || said.Len() > 0 {
		t.Errorf("all ended: code %d, %q", code, said.String())
	}
	code := codeOf(stopVerdict(System{Stderr: &said}, []stop.Stopped{ended, lives}, false))
	if code != exitFailure || said.String() != "Error: 1 thread could not be stopped\nTry:   rye-mcp threads kill b-1\n" {
		t.Errorf("one lives: code %d, %q", code, said.String())
	}
}

// Receipts that say why a thread could not be stopped are shown.
func TestTellStopped(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := tellStopped(System{Stdout: &out}, options{color: colorNever}, []stop.Stopped{
		{Success: true, ThreadID: "a-1", Receipts: []stop.Receipt{
			{ThreadID: "a-1", Status: thread.Cancelled, How: "not_started"},
			{ThreadID: "b-1", Status: thread.Running, How: "killed", Error: "no permission"},
		}},
		{}, // its error is told instead
	}, false)
	want := "THREAD  STATUS     HOW            SPEND\n" +
		"a-1     cancelled  not started    $0.0000\n" +
		"b-1     running    no permission  $0.0000\n"
	if err != nil || out.String() != want {
		t.Errorf("%v:\n%s\nwant\n%s", err, out.String(), want)
	}
}
