package threads

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
)

// A file is read again when it was replaced or has grown, and not otherwise.
func TestFileCacheFollowTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	var seen fileCache[string]
	reads := 0
	look := func() string {
		t.Helper()
		text, err := seen.of("a-1", records.File(path).Stamp, func() (string, error) {
			reads++
			raw, err := os.ReadFile(path)
			return string(raw), err
		})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	tick := time.Now() // a clock may be too coarse to tell two writes apart
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(name, []byte(text), 0o600), os.Chtimes(name, tick, tick)); err != nil {
			t.Fatal(err)
		}
	}
	write(path, "one")
	if first, second := look(), look(); first != "one" || second != "one" || reads != 1 {
		t.Errorf("%q and %q in %d reads of a file that stays the same", first, second, reads)
	}
	write(path, "one and two")
	if got := look(); got != "one and two" {
		t.Errorf("%q of a file that has grown", got)
	}
	write(path+".new", "two and one")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if got := look(); got != "two and one" {
		t.Errorf("%q of a file that was replaced", got)
	}
}

// A file that could not be read is tried again.
func TestFileCacheDoNotKeepErrors(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	var seen fileCache[int]
	broken := errors.New("broken")
	if _, err := seen.of("a-1", records.File(path).Stamp, func() (int, error) { return 1, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if got, err := seen.of("a-1", records.File(path).Stamp, func() (int, error) { return 2, nil }); got != 2 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	if _, err := seen.of("b-1", records.File(filepath.Join(path, "none")).Stamp, func() (int, error) { return 3, nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
