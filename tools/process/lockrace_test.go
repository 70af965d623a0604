//go:build linux || darwin

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// probe asks n times whether the lock is held and counts the answers.
func probe(path string, n int) (string, error) {
	yes := 0
	for range n {
		held, err := Held(path)
		if err != nil {
			return "", err
		}
		if held {
			yes++
		}
	}
	return fmt.Sprintf("%d of %d", yes, n), nil
}

// contend takes the lock n times, against others, and checks that it is alone.
// Every other time it removes the file before it lets go, so that the others
// may hold a lock on a file that has lost its name.
func contend(path string, n int) error {
	for taken := 0; taken < n; {
		lock, err := Acquire(path)
		if errors.Is(err, ErrLocked) {
			runtime.Gosched()
			continue
		}
		if err != nil {
			return err
		}
		taken++
		if err := errors.Join(alone(lock, taken%2 == 0), lock.Release()); err != nil {
			return err
		}
	}
	return nil
}

// alone checks that nobody else holds the lock, and that it looks held.
func alone(lock *Lock, remove bool) error {
	marker := lock.Path() + ".inside"
	inside, err := os.OpenFile(marker, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("not alone: %w", err)
	}
	held, err := Held(lock.Path())
	if err == nil && !held {
		err = errors.New("a held lock looks free")
	}
	err = errors.Join(err, inside.Close(), os.Remove(marker))
	if remove {
		err = errors.Join(err, os.Remove(lock.Path()))
	}
	return err
}

// helpers starts detached helpers and waits for them to report.
func helpers(t *testing.T, h *hub, names ...string) []*peer {
	t.Helper()
	peers := make([]*peer, len(names))
	for i, name := range names {
		started, err := Detach(h.helper().spec(name, nil))
		must(t, err)
		peers[i] = h.peer(name)
		t.Cleanup(func() {
			peers[i].send("exit 0")
			arrives(t, "end of "+name, started.Done())
		})
	}
	return peers
}

func TestProbesAgreeOnAnUncontendedLock(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	path := hub.path("lock")
	peers := helpers(t, hub, "a", "b", "c")
	ask := func(want string) {
		t.Helper()
		for _, p := range peers {
			p.send("probe " + path + " 300")
		}
		for _, p := range peers {
			if got := p.answer(); got != want {
				t.Errorf("%s counts %s, want %s", p.name, got, want)
			}
		}
	}
	ask("0 of 300")
	lock, err := Acquire(path)
	must(t, err)
	ask("300 of 300")
	must(t, lock.Release())
	ask("0 of 300") // probes do not see each other
}

// Probes alone never make Acquire fail, however many there are.
func TestProbesDoNotKeepALockerOut(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	hub := newHub(t)
	path := hub.path("lock")
	for _, p := range helpers(t, hub, "a", "b") {
		p.send("probe " + path + " 20000")
		defer p.answer()
	}
	stop := make(chan struct{})
	var probers sync.WaitGroup
	for range 4 {
		probers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := Held(path); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 1000 {
		lock, err := Acquire(path)
		if err != nil {
			t.Errorf("lock %d: %v", i, err)
			break
		}
		must(t, lock.Release())
	}
	close(stop)
	probers.Wait()
}

func TestLockersExcludeEachOther(t *testing.T) {
	t.Parallel()
	hub := newHub(t)
	path := filepath.Join(t.TempDir(), "lock")
	contenders := helpers(t, hub, "a", "b", "c")
	for _, p := range contenders {
		p.send("contend " + path + " 30")
	}
	prober := helpers(t, hub, "prober")[0]
	prober.send("probe " + path + " 2000")

	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if err := contend(path, 20); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, p := range contenders {
		if got := p.answer(); got != "ok" {
			t.Errorf("%s: %s", p.name, got)
		}
	}
	prober.answer()
	wantHeld(t, path, false)
}
