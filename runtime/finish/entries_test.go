package finish

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestEntriesAtMost: a look visits as many entries as it may, and says whether those were
// all; what is no entry is looked at, too, and counts for that.
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
