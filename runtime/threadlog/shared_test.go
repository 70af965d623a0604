package threadlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestShared: several who append to one log lose no line of those that are kept, and
// what they write stays within two files.
func TestShared(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "server.log")
	const writers, lines, most = 4, 400, 16 << 10
	var group sync.WaitGroup
	for w := range writers {
		log, err := openShared(path, most)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			defer func() { _ = log.Close() }()
			for n := range lines {
				if _, err := fmt.Fprintf(log, "raw%d line %d of the log\n", w, n); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	last := map[string]int{}
	for _, name := range []string{path + ".1", path} {
		text := read(t, name)
		if len(text) > most+writers*100 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
		for line := range strings.Lines(text) {
			m := numbered.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
			if m == nil {
				t.Fatalf("a line that nobody wrote: %q", line)
			}
			var n int
			_, _ = fmt.Sscan(m[2], &n)
			last[m[1]] = max(last[m[1]], n)
		}
	}
	for w := range writers {
		if name := fmt.Sprint("raw", w); last[name] != lines-1 && last[name] != 0 {
			t.Errorf("the last line of %s is %d", name, last[name])
		}
	}
}

// TestSharedElsewhere: a log that is no file is written to as it is.
func TestSharedElsewhere(t *testing.T) {
	t.Parallel()
	log, err := openShared(os.DevNull, 10)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := log.Write([]byte("more than ten bytes")); err != nil {
			t.Error(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}
