package finish

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestEntriesAtMost: a look visits as many entries as it may, and says whether those were
// all; files that are no entries are looked at, too, and count for that.
func TestEntriesAtMost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		entries, others, most, visited int
		all                            bool
	}{
		"fewer":            {3, 0, 4, 3, true},
		"as many":          {4, 0, 4, 4, true},
		"more":             {9, 0, 4, 4, false},
		"among others":     {2, 2, 4, 2, true},
		"behind many more": {0, 9, 4, 0, false},
		"none":             {0, 0, 4, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &Finisher{KnowledgeDir: KnowledgeDir(t.TempDir())}
			dir := filepath.Join(f.KnowledgeDir, threadsFolder, "x")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for i := range test.entries + test.others {
				ending := ".md"
				if i >= test.entries {
					ending = ".txt"
				}
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("x-", i, ending)), []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			visited := 0
			all, err := f.Entries(test.most, func(Entry) error { visited++; return nil })
			if err != nil || all != test.all || visited != test.visited {
				t.Errorf("visited %d, all %t, %v; want %d, %t", visited, all, err, test.visited, test.all)
			}
		})
	}
}

// TestForgetKnowledge: of threads of which the ids alone are known the entries go, in the
// folder of whichever directive; those of others with the same name stay.
func TestForgetKnowledge(t *testing.T) {
	t.Parallel()
	f := &Finisher{KnowledgeDir: KnowledgeDir(t.TempDir())}
	entryFor := func(id thread.ID, directive string) string {
		rec := thread.Record{ThreadID: id, Directive: directive}
		path := Rendering(f.KnowledgeDir, rec)
		text := fmt.Sprintf("# Thread\n```yaml\nthread_id: %s\nstatus: completed\n```\n", id)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	gone := entryFor("plan-1", "team/plan")
	stays := []string{entryFor("plan-2", "team/plan"), entryFor("other/plan-1", "plan")}
	for range 2 {
		if err := f.ForgetKnowledge([]thread.ID{"plan-1", "never-seen"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	for _, path := range stays {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}
