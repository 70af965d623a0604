package records_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/records/recordstest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// Variables that make this program the writer of [recordstest.Hammer].
const (
	hammerDir = "RECORDS_HAMMER_DIR"
	hammerKey = "RECORDS_HAMMER_KEY"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(hammerDir); dir != "" {
		_, _ = fmt.Fprintln(os.Stderr, hammer(dir))
		os.Exit(1)
	}
	if dir := os.Getenv(crashDir); dir != "" {
		_, _ = fmt.Fprintln(os.Stderr, compressAndDie(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func hammer(dir string) error {
	key, err := sign.LoadState(os.Getenv(hammerKey))
	if err != nil {
		return err
	}
	return recordstest.Hammer(local(dir, placetest.Seal(key)), os.Stdout)
}

func local(dir string, seal *place.Seal) records.Local {
	return records.Local{Home: folder.Home{Dir: dir, Seal: seal}.Always()}
}

// TestLocal holds records in folders against the promises of all records.
func TestLocal(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	recordstest.Run(t, func(t *testing.T) recordstest.Subject {
		dir, user := filepath.Join(t.TempDir(), "threads"), t.TempDir()
		key, err := sign.EnsureState(user, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		process := exec.CommandContext(t.Context(), self)
		process.Env = append(os.Environ(), hammerDir+"="+dir, hammerKey+"="+user)
		process.Stderr = os.Stderr
		return recordstest.Subject{Records: local(dir, placetest.Seal(key)), Blind: local(dir, nil), Hammer: process}
	})
}

// TestInPlace: who writes a transcript is told when readers find another, or none.
func TestInPlace(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(path string) error{
		"":         func(string) error { return nil },
		"deleted":  os.Remove,
		"replaced": func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
	} {
		path := filepath.Join(t.TempDir(), "transcript.jsonl")
		w, err := records.File(path).Append()
		if err != nil {
			t.Fatal(err)
		}
		if err := move(path); err != nil {
			t.Fatal(err)
		}
		if err := w.InPlace(); errors.Is(err, records.ErrLost) != (name != "") {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLeftoverOfSomebody: a place in which somebody just begins a thread is no leftover,
// and the lock of that stays where it is.
func TestLeftoverOfSomebody(t *testing.T) {
	t.Parallel()
	l := local(t.TempDir(), nil)
	dir, of := l.Home().Of("work-1"), l.Of("work-1")
	if err := of.Prepare(); err != nil {
		t.Fatal(err)
	}
	stale, live := dir.Lock(thread.NewRun()), dir.Lock(thread.NewRun())
	if err := errors.Join(os.WriteFile(stale, nil, 0o600), os.WriteFile(dir.Lock(""), nil, 0o600), os.WriteFile(dir.Log(), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	lock, err := process.Acquire(live)
	if err != nil {
		t.Fatal(err)
	}
	if removed, err := of.RemoveLeftover(); removed || err != nil {
		t.Errorf("removed %t, %v", removed, err)
	}
	if held, err := process.Held(live); !held || err != nil {
		t.Errorf("its lock is held: %t, %v", held, err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if removed, err := of.RemoveLeftover(); !removed || err != nil {
		t.Errorf("afterwards removed %t, %v", removed, err)
	}
}
