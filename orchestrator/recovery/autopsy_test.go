package recovery

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// far is the life of a thread as a machine sees it that does not run it.
type far struct {
	life.Life
	reach life.Reach
}

func (f far) Reach(thread.Process) life.Reach { return f.reach }

// silent is a thread that has left no log.
type silent struct {
	records.Thread
	log records.Source
}

func (s silent) Log() records.Source { return s.log }

// TestAutopsyTellsOfLease holds that a thread which ended with a lease says so: nobody looks for
// what has killed its process then.
func TestAutopsyTellsOfLease(t *testing.T) {
	t.Parallel()
	leased := thread.NewIncarnation().NewRun()
	killed := life.Exit{Code: -1, Signal: "SIGKILL"}
	for name, c := range map[string]struct {
		reach  life.Reach
		run    thread.Run
		worker string
		exit   life.Exit
		want   string
	}{
		"of a worker elsewhere": {life.Elsewhere, leased, "w1", life.Exit{}, "thread process died (the lease of worker w1 has run out)"},
		"of its own elsewhere":  {life.Elsewhere, leased, "", life.Exit{}, "thread process died (its lease has run out)"},
		"none, elsewhere":       {life.Elsewhere, "OLDER", "", life.Exit{}, "thread process died"},
		"killed by nobody":      {life.Bygone, leased, "w1", killed, "thread process died (killed by SIGKILL)"},
		"killed by its worker": {life.Bygone, leased, "w1", life.Exit{Code: -1, Signal: "SIGKILL", Why: "its worker had lost its lease"},
			"thread process died (killed by SIGKILL: its worker had lost its lease)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &Sweeper{Life: far{reach: c.reach}, ExitOf: func(context.Context, thread.ID) (life.Exit, bool) { return c.exit, c.exit != life.Exit{} }}
			rec := thread.Record{ThreadID: "x-1", Status: thread.Running, Run: c.run, Process: thread.Process{Worker: c.worker}}
			if got := s.autopsy(t.Context(), rec, silent{log: records.File(filepath.Join(t.TempDir(), "none"))}); got.Message != c.want {
				t.Errorf("%q, want %q", got.Message, c.want)
			}
		})
	}
}

func TestLastWords(t *testing.T) {
	t.Parallel()
	stack := strings.Repeat("goroutine 1 [running]:\n\tmain.main()\n", 100)
	for name, tt := range map[string]struct{ log, want string }{
		"nothing":          {"", ""},
		"only its log":     {`{"level":"info","message":"thread ended"}` + "\n", ""},
		"panic":            {"{}\npanic: boom\n\tpanic: again\n\n" + stack, "panic: boom"},
		"fatal":            {"fatal error: all goroutines are asleep\n" + stack, "fatal error: all goroutines are asleep"},
		"reported":         {"Error: first\nTry:   this\nError: no provider\nTry:   that\n", "no provider"},
		"panic and report": {"Error: before\npanic: boom\n", "panic: boom"},
		"far back":         {"panic: lost\n" + strings.Repeat("x", maxLogTail) + "\nError: near\n", "near"},
		"no text":          {"Error: \xff\xfe\n", "\uFFFD"},
		"no last newline":  {"Error: cut off", "cut off"},
	} {
		path := filepath.Join(t.TempDir(), "thread.log")
		if err := os.WriteFile(path, []byte(tt.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lastWords(records.File(path)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if got := lastWords(records.File(filepath.Join(t.TempDir(), "missing"))); got != "" {
		t.Errorf("a missing log says %q", got)
	}
}

// FuzzLastWords: a log can hold anything, and what is taken from it goes into a
// row and to a model.
func FuzzLastWords(f *testing.F) {
	f.Add([]byte("panic: x\n"))
	f.Add([]byte("Error: " + strings.Repeat("ü", 1000)))
	f.Add([]byte("\n\n\xffError: \x00"))
	f.Fuzz(func(t *testing.T, log []byte) {
		if got := lastWordsIn(string(log)); !utf8.ValidString(got) || strings.ContainsRune(got, '\n') || len(got) > 2000 {
			t.Errorf("last words %q", got)
		}
	})
}
