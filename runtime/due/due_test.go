package due_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/due"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func ids(t *testing.T, n due.Notes, now time.Time) string {
	t.Helper()
	list, _, err := n.List(now)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, d := range list {
		all = append(all, string(d.ID))
	}
	return strings.Join(all, " ")
}

// TestTaken: a note that comes while a thread is sent is due after it, and so is one that
// was taken before a crash.
func TestTaken(t *testing.T) {
	t.Parallel()
	n, id, now := due.Notes{Dir: filepath.Join(t.TempDir(), "due")}, thread.ID("a/d-1"), time.Now()
	if n.Count() > 0 || ids(t, n, now) != "" {
		t.Fatal("something is due where there is no folder")
	}
	for name, step := range map[string]struct {
		do   []func(thread.ID) error
		want string
	}{
		"noted":              {[]func(thread.ID) error{n.Note, n.Note}, "a/d-1"},
		"taken":              {[]func(thread.ID) error{n.Note, n.Take}, "a/d-1"},
		"taken again":        {[]func(thread.ID) error{n.Note, n.Take, n.Take}, "a/d-1"},
		"sent":               {[]func(thread.ID) error{n.Note, n.Take, n.Sent}, ""},
		"sent again":         {[]func(thread.ID) error{n.Note, n.Take, n.Sent, n.Sent}, ""},
		"noted while sent":   {[]func(thread.ID) error{n.Note, n.Take, n.Note, n.Sent}, "a/d-1"},
		"noted, taken twice": {[]func(thread.ID) error{n.Note, n.Take, n.Note, n.Take, n.Sent}, ""},
		"done":               {[]func(thread.ID) error{n.Note, n.Done, n.Done}, ""},
	} {
		for _, do := range step.do {
			if err := do(id); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if got := ids(t, n, now); got != step.want || (n.Count() > 0) != (step.want != "") {
			t.Errorf("%s: %q is due, %d notes", name, got, n.Count())
		}
		if err := os.RemoveAll(n.Dir); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBounds: notes without bounds stay however old and many they are.
func TestBounds(t *testing.T) {
	t.Parallel()
	dir, now := filepath.Join(t.TempDir(), "due"), time.Now()
	all := due.Notes{Dir: dir}
	for _, id := range []thread.ID{"d-1", "d-2", "d-3"} {
		if err := all.Note(id); err != nil {
			t.Fatal(err)
		}
	}
	year := now.AddDate(1, 0, 0)
	if err := os.WriteFile(filepath.Join(dir, "nobody's"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first := now.Add(-time.Minute)
	if err := os.Chtimes(all.Path("d-2"), first, first); err != nil {
		t.Fatal(err)
	}
	if s, err := all.Standing(); err != nil || s.Threads != 3 || !s.Oldest.Equal(first) {
		t.Errorf("%+v, %v", s, err)
	}
	if got := ids(t, all, year); len(strings.Fields(got)) != 3 {
		t.Errorf("%q is due after a year", got)
	}
	if got := ids(t, due.Notes{Dir: dir, Most: 2}, now); len(strings.Fields(got)) != 2 {
		t.Errorf("%q is due, of which 2 may be", got)
	}
	if got := ids(t, due.Notes{Dir: dir, Late: time.Hour}, year); got != "" || all.Count() > 1 {
		t.Errorf("%q is due after a year of an hour", got)
	}
}
