package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// TestMigrateToQueue opens a registry of the version before the queue, with rows.
func TestMigrateToQueue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, registryFile)
	first(t, path, func(db *sql.DB) error {
		_, err := db.ExecContext(t.Context(), `INSERT INTO threads
			(thread_id, completed_at, kind, result, directive, parent_id, status, created_at, updated_at, last_used) VALUES
			('waits', NULL, 'directive', NULL, 'd', NULL, 'created', 1000, 2000, 3000),
			('runs', NULL, 'directive', NULL, 'd', 'waits', 'running', 1000, 2000, 3000),
			('tool', NULL, 'tool', NULL, 'd', 'waits', 'running', 1000, 2000, 3000),
			('ended', 2500, 'directive', '{"status":"error"}', 'd', 'waits', 'error', 1000, 2000, 3000)`)
		return err
	})
	s := open(t, dir, Options{})
	for _, want := range []thread.Record{
		{ThreadID: "waits", Status: thread.Created, QueuedAt: time.UnixMilli(1000), AdmittedAt: time.UnixMilli(1000)},
		{ThreadID: "runs", Status: thread.Running, QueuedAt: time.UnixMilli(1000), AdmittedAt: time.UnixMilli(1000), ParentID: "waits"},
		{ThreadID: "tool", Status: thread.Running, ParentID: "waits"},
		{ThreadID: "ended", Status: thread.Error, ParentID: "waits"},
	} {
		got, err := s.Get(t.Context(), want.ThreadID)
		if err != nil || got.Status != want.Status || got.ParentID != want.ParentID || got.Yielded || got.Queued() ||
			!got.QueuedAt.Equal(want.QueuedAt) || !got.AdmittedAt.Equal(want.AdmittedAt) {
			t.Errorf("migrated %+v, %v", got, err)
		}
	}
	id := mustRegister(t, s, newThread("d", ""))
	if rec, err := s.Enqueue(t.Context(), id, 2, testTime); err != nil || !rec.Queued() {
		t.Errorf("beside two that run: %+v, %v", rec, err)
	}
	if load, err := s.QueueLoad(t.Context()); err != nil || load != (store.QueueLoad{Occupied: 2, Queued: 1}) {
		t.Errorf("load %+v, %v", load, err)
	}
	if lost, err := s.Lost(t.Context()); lost || err != nil {
		t.Errorf("lost %v, %v", lost, err)
	}
}

// first makes a registry of schema version 1 and lets fill write to it.
func first(t *testing.T, path string, fill func(*sql.DB) error) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db := sharedfile.Pool(path, 1)
	provider, err := newProvider(db, names[registryFile])
	if err != nil {
		t.Fatal(err)
	}
	_, err = provider.UpTo(t.Context(), 1)
	if err := errors.Join(err, fill(db), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestProcessesShareTheQueue has several servers admit from one queue, each of
// which ends what it admitted. Some are killed meanwhile.
func TestProcessesShareTheQueue(t *testing.T) {
	t.Parallel()
	for _, kills := range []int{0, 2} {
		t.Run(fmt.Sprintf("%d killed", kills), func(t *testing.T) {
			t.Parallel()
			shareQueue(t, 5, kills)
		})
	}
}

func shareQueue(t *testing.T, processes, kills int) {
	const threads = 30
	dir := t.TempDir()
	s := open(t, dir, Options{})
	var queue []string
	for range threads {
		id := mustRegister(t, s, newThread("d", ""))
		if _, err := s.Enqueue(t.Context(), id, 0, testTime); err != nil {
			t.Fatal(err)
		}
		queue = append(queue, string(id))
	}
	players := make([]*player, processes)
	for i := range players {
		players[i] = start(t, "admit", dir)
	}
	for i, p := range players[:kills] {
		for range 2 + i {
			if p.line() == allEnded {
				break
			}
		}
	}
	for i, p := range players {
		if i < kills {
			p.kill(t)
		} else {
			p.goAhead(t)
		}
	}
	// A look at threads ends those whose process is gone.
	for ended := 0; ended < threads; {
		var err error
		if ended, err = endDead(t.Context(), s, dir); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range players {
		for line := p.line(); line != ""; line = p.line() {
			if strings.HasPrefix(line, "wrong") {
				t.Error(line)
			}
		}
		p.awaitEnd(t, i < kills)
	}
	claimed, err := os.ReadFile(filepath.Join(dir, "claims"))
	if err != nil {
		t.Fatal(err)
	}
	if order := distinct(strings.Fields(string(claimed))); kills == 0 && !slices.Equal(order, queue) {
		t.Errorf("admitted %v\nwant %v", order, queue)
	}
	if load, err := s.QueueLoad(t.Context()); err != nil || load != (store.QueueLoad{}) {
		t.Errorf("in the end %+v, %v", load, err)
	}
}

// distinct leaves out what came before: a claim whose thread was admitted by another
// meanwhile is made in vain.
func distinct(all []string) (first []string) {
	for _, one := range all {
		if !slices.Contains(first, one) {
			first = append(first, one)
		}
	}
	return first
}

// errBusy says that somebody else is about to admit a thread.
var errBusy = errors.New("busy")

// lockThread takes the lock of a thread's life, or reports that it is taken.
func lockThread(dir string, id thread.ID) (*process.Lock, error) {
	life, err := process.Acquire(filepath.Join(dir, string(id)+".life"))
	if errors.Is(err, process.ErrLocked) {
		return nil, store.ErrTaken
	}
	return life, err
}

// endDead ends every admitted thread whose lock is free, and counts all that
// have ended.
func endDead(ctx context.Context, s *Store, dir string) (ended int, err error) {
	rows, _, err := s.List(ctx, store.Filter{Limit: store.MaxPage})
	if err != nil {
		return 0, err
	}
	for _, rec := range rows {
		if rec.Status.Terminal() {
			ended++
			continue
		}
		if rec.AdmittedAt.IsZero() {
			continue
		}
		life, err := lockThread(dir, rec.ThreadID)
		if errors.Is(err, store.ErrTaken) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if err := errors.Join(endThread(ctx, s, rec.ThreadID), life.Release()); err != nil {
			return 0, err
		}
	}
	return ended, nil
}

// endThread ends a thread, which another may have done first.
func endThread(ctx context.Context, s *Store, id thread.ID) error {
	c, err := store.Finished(id, thread.Outcome{State: thread.Error}, nil, testTime)
	if err != nil {
		return err
	}
	_, err = storetest.As(s).Apply(ctx, c)
	if errors.Is(err, thread.ErrSettled) {
		return nil
	}
	return err
}

// allEnded is what a player says last, before it waits until its input ends.
const allEnded = "all have ended"

// playAdmit admits and ends threads until all have ended.
func playAdmit(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	const slots = 3
	s, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	claims, err := os.OpenFile(filepath.Join(dir, "claims"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	wake := s.Changes(ctx)
	for {
		var life *process.Lock
		rec, admitted, err := storetest.As(s).Admit(ctx, slots, testTime, func(rec thread.Record) (err error) {
			if life != nil {
				err = life.Release()
			}
			if err == nil {
				life, err = lockThread(dir, rec.ThreadID)
			}
			if errors.Is(err, store.ErrTaken) {
				return errBusy // to pass it over would be unfair
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(claims, rec.ThreadID)
			return err
		})
		if life != nil && !admitted {
			err = errors.Join(err, life.Release())
		}
		if errors.Is(err, errBusy) {
			continue
		}
		if err != nil {
			return err
		}
		load, err := s.QueueLoad(ctx)
		if err != nil {
			return err
		}
		said := "admitted " + string(rec.ThreadID)
		if load.Occupied > slots {
			said = fmt.Sprintf("wrong: %d threads in %d slots", load.Occupied, slots)
		}
		switch {
		case admitted:
			if _, err := fmt.Fprintln(out, said); err != nil {
				return err
			}
			if err := errors.Join(endThread(ctx, s, rec.ThreadID), life.Release()); err != nil {
				return err
			}
		case load == store.QueueLoad{}:
			if _, err := fmt.Fprintln(out, allEnded); err != nil {
				return err
			}
			_, err := io.Copy(io.Discard, in)
			return errors.Join(err, claims.Close(), s.Close())
		default:
			<-wake
		}
	}
}
