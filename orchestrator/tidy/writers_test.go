package tidy_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// wantNothing holds that no file of any thread is left in the project, whatever its name.
func (s *scene) wantNothing() {
	s.Helper()
	state := placetest.Dir(s.project)
	for _, dir := range []string{filepath.Join(s.project, ".ai", "knowledge"), state} {
		s.noError(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && (dir != state || filepath.Dir(path) != state) && !d.IsDir() {
				s.Errorf("%s is left", path)
			}
			return err
		}))
	}
}

// TestKilledWriter kills a process that writes a knowledge entry of its thread. The
// draft goes when the thread is settled, or with the thread where that could not be done.
func TestKilledWriter(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, deed := range []string{"end", "sum up"} {
		t.Run(deed, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			id := s.running("work", "")
			s.dieAt(id, finish.CrashDrafted, deed)
			drafts, err := filepath.Glob(filepath.Join(filepath.Dir(s.rendering(id)), ".*"))
			s.noError(err)
			if len(drafts) != 1 {
				t.Fatalf("left by the killed process are %q", drafts)
			}
			s.now = time.Now().Add(2 * time.Hour) // another machine ran it, and nothing is heard of that
			rec, err := s.t.Threads.Examine(s.ctx, id)
			s.noError(err)
			if !rec.Status.Terminal() {
				t.Fatalf("it is %s", rec.Status)
			}
			if _, err := os.Lstat(drafts[0]); !os.IsNotExist(err) {
				t.Errorf("the draft after the thread was settled: %v", err)
			}
			s.noError(os.WriteFile(drafts[0], []byte("half an entry"), 0o600))
			s.delete(id)
			s.wantGone(id)
			s.wantNothing()
		})
	}
}

// afterHeld is a life that tells of each answer to whether somebody has a life of a thread.
type afterHeld struct {
	life.Life
	then func(held bool)
}

func (l afterHeld) Held(k life.Key) (bool, error) {
	held, err := l.Life.Held(k)
	if k.Run == "" {
		l.then(held)
	}
	return held, err
}

// mender is another process that completes the end of a thread. It waits at a crash point
// until it is let go.
type mender struct {
	at, done chan struct{}
	goOn     func()
}

// completing begins to complete the end of a thread, whose thread.json a crash has kept
// from saying so.
func (s *scene) completing(id thread.ID, point thread.Crashpoint) *mender {
	s.Helper()
	other := openScene(s.TB, s.project)
	goOn := make(chan struct{})
	m := &mender{at: make(chan struct{}), done: make(chan struct{}), goOn: sync.OnceFunc(func() { close(goOn) })}
	other.t.Threads.Finisher.Crashpoints = func(now thread.Crashpoint) {
		if now == point {
			close(m.at)
			<-goOn
		}
	}
	rec, err := other.store.Get(other.ctx, id)
	s.noError(err)
	go func() {
		defer close(m.done)
		other.t.Threads.Complete(other.ctx, rec)
	}()
	s.Cleanup(func() { m.goOn(); <-m.done })
	return m
}

// half is a thread whose row has ended, while its thread.json says that it runs.
func (s *scene) half() thread.ID {
	s.Helper()
	id := s.running("work", "")
	meta, err := s.t.Threads.Records.Of(id).Meta().Read()
	s.noError(err)
	s.end(id, thread.Completed, 7)
	s.noError(s.t.Threads.Records.Of(id).Meta().Write(meta))
	return id
}

// TestWriterMeanwhile deletes a thread while another process completes its end, which has
// begun after the deletion looked for such a process. The removal waits for it, at each
// step, and nothing comes back.
func TestWriterMeanwhile(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, point := range append(finish.Crashpoints(), finish.EntryCrashpoints()...) {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			id := s.half()
			var m *mender
			s.t.Threads.Life = afterHeld{s.t.Threads.Life, func(held bool) {
				if m == nil {
					m = s.completing(id, point)
					<-m.at
				} else if held { // the removal waits
					m.goOn()
				}
			}}
			s.delete(id)
			m.goOn()
			<-m.done
			s.wantGone(id)
			s.wantNothing()
		})
	}
}

// TestWriterHangs deletes a thread while a process hangs that writes its files. The deletion
// stays on record, says why, and the next one ends it when the process has gone on.
func TestWriterHangs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.half()
	var m *mender
	impatient, stop := context.WithCancel(s.ctx)
	s.t.Threads.Life = afterHeld{s.t.Threads.Life, func(held bool) {
		if m == nil {
			m = s.completing(id, finish.CrashDrafted)
			<-m.at
		} else if held {
			stop()
		}
	}}
	_, err := s.t.Threads.Life.Held(life.Key{Thread: id})
	s.noError(err)
	refused, err := s.store.Delete(s.ctx, [][]thread.ID{{id}}, s.now)
	s.noError(errors.Join(append(refused, err)...))
	done, err := s.t.Continue(impatient, nil)
	if err != nil && !errors.Is(err, context.Canceled) || done.Left != 1 || !strings.Contains(fmt.Sprint(done.Kept), "still writes") {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := os.Lstat(s.folder(id)); err != nil {
		t.Errorf("the folder: %v", err)
	}
	m.goOn()
	<-m.done
	if told := s.delete(id); told.DeletedAt == "" {
		t.Errorf("told %+v", told)
	}
	s.wantGone(id)
	s.wantNothing()
}

// TestLateWriter: a process that finds a thread by a row that was deleted meanwhile writes
// nothing, and leaves no folder: one that settles it, one that completes its end.
func TestLateWriter(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.running("work", "")
	alive, err := s.store.Get(s.ctx, id)
	s.noError(err)
	s.end(id, thread.Completed, 7)
	ended, err := s.store.Get(s.ctx, id)
	s.noError(err)
	s.delete(id)
	s.now = time.Now().Add(2 * time.Hour)
	if _, err := s.t.Threads.Sweeper.Examine(s.ctx, alive); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("settled: %v", err)
	}
	s.noError(s.t.Threads.Sweeper.Complete(s.ctx, ended))
	s.wantGone(id)
	s.wantNothing()
}
