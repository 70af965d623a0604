package loop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestStubbornTool: a tool that does not end when it is told to does not hold
// its thread, and what it does later does not spoil the record.
func TestStubbornTool(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		job  job
		stop bool // else the time limit does
		want thread.State
		code string
	}{
		"cancelled":  {stop: true, want: thread.Cancelled, code: "cancelled"},
		"time is up": {want: thread.Error, code: "duration_exceeded"},
		"background": {job: job{kind: thread.KindTool, tool: "test/stubborn", inputs: map[string]any{}, unbudgeted: true}, stop: true, want: thread.Cancelled, code: "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			defer close(h.tools.release)
			h.script("turns:\n  - {tool_calls: [{name: test_stubborn, input: {}}, {name: test_echo, input: {word: a}}]}\n")
			if !c.stop {
				c.job.limits = func(l *thread.Limits) { l.DurationSeconds = 0.1 }
			}
			id := h.register(c.job)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			r := newRun(h.deps(id))
			r.patience = time.Millisecond
			if c.stop {
				go func() {
					<-h.tools.began
					cancel(&thread.SignalError{Signal: "SIGTERM"})
				}()
			}
			rec, err := r.toEnd(ctx)
			if err != nil || rec.Status != c.want || rec.Outcome.Error.Code != c.code {
				t.Fatalf("%s %+v, %v", rec.Status, rec.Outcome.Error, err)
			}
			if c.stop && c.job.kind != thread.KindTool { // else the time may be up before the tool begins
				left := slices.ContainsFunc(h.results(id), func(result transcript.ToolCallResult) bool {
					return result.Tool == "test_stubborn" && result.IsError && strings.Contains(result.Text, "left behind")
				})
				if !left {
					t.Errorf("results %+v", h.results(id))
				}
			}
			r.record(thread.EventToolCallResult, transcript.ToolCallResult{Text: "too late"})
			h.checkAgreement(t.Context(), rec)
		})
	}
}

// TestTranscriptLost: a thread whose transcript is gone makes no further call,
// and breaks off the one it is in.
func TestTranscriptLost(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	lose := map[string]func(*house, thread.ID) error{
		"replaced by a folder": func(h *house, id thread.ID) error {
			path := h.folder(id).Transcript()
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		},
		"folder deleted": func(h *house, id thread.ID) error { return os.RemoveAll(string(h.folder(id))) },
		"folder moved": func(h *house, id thread.ID) error {
			return os.Rename(string(h.folder(id)), filepath.Join(h.project, "elsewhere"))
		},
	}
	for when, script := range map[string]string{
		"during a tool": "turns:\n  - {tool_calls: [{name: test_wait, input: {}}]}\n",
		"during a call": "turns:\n  - {text: half an answer, hang: true, cut_after: 3, usage: {input_tokens: 100, output_tokens: 10}}\n",
	} {
		for how, lose := range lose {
			t.Run(when+"/"+how, func(t *testing.T) {
				t.Parallel()
				h := newHouse(t)
				h.script(script)
				id := h.register(job{})
				r := newRun(h.deps(id))
				r.lookEvery = time.Millisecond
				go func() {
					h.awaitTrouble(t.Context(), id)
					if err := lose(h, id); err != nil {
						t.Error(err)
					}
					close(h.tools.release)
				}()
				rec, err := r.toEnd(t.Context())
				if err != nil || rec.Status != thread.Error || rec.Outcome.Error.Code != "transcript_lost" {
					t.Fatalf("%s %+v, %v", rec.Status, rec.Outcome, err)
				}
				if n := len(h.server.Requests()); n != 1 {
					t.Errorf("%d requests", n)
				}
				if budget, err := h.store.Budget(t.Context(), id); err != nil || budget.Active || budget.Own != rec.Cost.Spend {
					t.Errorf("budget %+v, row %+v, %v", budget, rec.Cost, err)
				}
			})
		}
	}
}
