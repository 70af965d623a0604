package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest/crowdtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// damages are ways to ruin a database file of some pages.
var damages = map[string]func(content []byte) []byte{
	"no database":           func([]byte) []byte { return []byte(strings.Repeat("no SQLite file ", 100)) },
	"cut to half":           func(b []byte) []byte { return b[:len(b)/2] },
	"cut in its first page": func(b []byte) []byte { return b[:700] },
	"garbage in the middle": func(b []byte) []byte {
		copy(b[len(b)/2:], strings.Repeat("garbage ", 1024))
		return b
	},
	"header lost": func(b []byte) []byte {
		clear(b[:100])
		return b
	},
}

// filled is a closed store with enough in it to be damaged, beside the folder of
// a thread.
func filled(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := open(t, dir, Options{})
	mkdir(t, filepath.Join(dir, "d-1"))
	for _, insert := range []struct {
		db  *database
		sql string
	}{
		{s.registry, `INSERT INTO threads (thread_id, kind, directive, created_at, updated_at, last_used) SELECT 't-' || i, 'directive', 't', i, 1, 1 FROM n`},
		{s.ledger, `INSERT INTO budgets (thread_id, max_spend, created_at, updated_at) SELECT 't-' || i, 1, 1, 1 FROM n`},
	} {
		if err := beside(t, insert.db, numbers+insert.sql, 500); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func damage(t *testing.T, path string, how func([]byte) []byte) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, string(how(content)))
}

// openAndCheck opens a store that may be damaged.
func openAndCheck(ctx context.Context, dir string) error {
	s, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	return errors.Join(s.Check(ctx), s.Close())
}

func TestDamageIsSetAside(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, how := range damages {
		for file := range names {
			t.Run(name+" of "+file, func(t *testing.T) {
				t.Parallel()
				dir := filled(t)
				path := filepath.Join(dir, file)
				damage(t, path, how)
				ruined, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				damaged := new(store.CorruptError)
				if err := openAndCheck(t.Context(), dir); !errors.As(err, &damaged) || damaged.Path != path || !strings.Contains(err.Error(), path) {
					t.Fatalf("damage shows as %v", err)
				}
				aside, err := SetAside(t.Context(), path, testTime, nil)
				if err != nil || aside != path+".corrupt-20260304T050607Z" {
					t.Fatalf("set aside to %q, %v", aside, err)
				}
				if kept, err := os.ReadFile(aside); err != nil || string(kept) != string(ruined) {
					t.Errorf("what was set aside has changed, %v", err)
				}
				s := open(t, dir, Options{})
				if lost, err := s.Lost(t.Context()); !lost || err != nil {
					t.Errorf("lost %v, %v", lost, err)
				}
				if _, err := s.Restore(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				if lost, err := s.Lost(t.Context()); lost || err != nil {
					t.Errorf("lost %v, %v after it was restored", lost, err)
				}
				if again, err := SetAside(t.Context(), path, testTime, nil); again != "" || err != nil {
					t.Errorf("the new one was set aside to %q, %v", again, err)
				}
			})
		}
	}
}

// TestDamageShowsLate: a store that was opened in time meets the damage in its
// reads and writes.
func TestDamageShowsLate(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	s := open(t, dir, Options{})
	damage(t, s.registry.path, func(b []byte) []byte {
		for i := 8192; i < len(b); i++ {
			b[i] = 0xaa
		}
		return b
	})
	damaged := new(store.CorruptError)
	if _, _, err := s.List(t.Context(), store.Filter{Text: "x"}); !errors.As(err, &damaged) || damaged.Path != s.registry.path {
		t.Errorf("list: %v", err)
	}
	if _, _, err := store.Register(t.Context(), s, newThread("d", ""), claimNothing); !errors.As(err, &damaged) || damaged.Path != s.registry.path {
		t.Errorf("register: %v", err)
	}
	if err := s.OpenRoot(t.Context(), "other", 5, testTime); err != nil {
		t.Errorf("the ledger: %v", err)
	}
}

func TestSetAsideRefuses(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	for path, want := range map[string]string{
		filepath.Join(dir, "other.db"):                  "no database of a thread store",
		filepath.Join(dir, registryFile):                "",
		filepath.Join(dir, "d-1", registryFile):         "",
		filepath.Join(dir, "none", "none", "ledger.db"): "no database of a thread store",
	} {
		aside, err := SetAside(t.Context(), path, testTime, nil)
		if aside != "" || (want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s was set aside to %q, %v", path, aside, err)
		}
	}
}

// TestSetAsideNeverOverwrites: damage twice in one second.
func TestSetAsideNeverOverwrites(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), ledgerFile)
	for n, want := range []string{"", "-2", "-3"} {
		writeFile(t, path, strings.Repeat(fmt.Sprint("damaged ", n), 100))
		writeFile(t, path+"-wal", "log")
		aside, err := SetAside(t.Context(), path, testTime, nil)
		if err != nil || aside != path+".corrupt-20260304T050607Z"+want {
			t.Errorf("set aside to %q, %v", aside, err)
		}
		if sharedfile.Exists(path + "-wal") {
			t.Error("the log stayed behind")
		}
	}
}

// TestLostWithTheFile: the registry is gone, or empty, and a thread's folder is
// there.
func TestLostWithTheFile(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(path string) error{
		"removed": os.Remove,
		"emptied": func(path string) error { return os.Truncate(path, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filled(t)
			if err := lose(filepath.Join(dir, registryFile)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				s := open(t, dir, Options{})
				if lost, err := s.Lost(t.Context()); !lost || err != nil {
					t.Errorf("lost %v, %v", lost, err)
				}
				mustRegister(t, s, newThread("d", ""))
			}
		})
	}
}

// TestRemovedWhileOpen: nothing of a registry that was removed by hand gets into
// the one that is made in its place.
func TestRemovedWhileOpen(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	old := open(t, dir, Options{})
	before := mustRegister(t, old, newThread("before", "")) // is in the log alone
	index, err := os.Stat(old.registry.path + "-shm")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(old.registry.path); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, Options{})
	if now, err := os.Stat(s.registry.path + "-shm"); err == nil && os.SameFile(now, index) {
		t.Error("two registries share the locks and the index of one log")
	}
	after := mustRegister(t, s, newThread("after", ""))
	for _, s := range []*Store{s, old, open(t, dir, Options{})} {
		if _, err := s.Get(t.Context(), before); !errors.Is(err, thread.ErrNotFound) {
			t.Errorf("row of the old registry: %v", err)
		}
		if _, err := s.Get(t.Context(), after); err != nil {
			t.Error(err)
		}
		if err := s.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestStoreFollows: a store goes on in the file that has replaced the one it had
// open, and its end does that no harm.
func TestStoreFollows(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	old, reader := open(t, dir, unpolled), open(t, dir, Options{Poll: time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	changes := reader.Changes(ctx)
	before := mustRegister(t, old, newThread("before", ""))
	<-changes
	if _, err := sharedfile.SetAside(old.registry.path, old.registry.path+asideMark, testTime); err != nil {
		t.Fatal(err)
	}
	id := mustRegister(t, old, newThread("after", ""))
	for rec, err := reader.Get(ctx, id); rec.ThreadID != id; rec, err = reader.Get(ctx, id) {
		if err != nil && !errors.Is(err, thread.ErrNotFound) {
			t.Fatal(err)
		}
		<-changes
	}
	if _, err := old.Get(ctx, before); !errors.Is(err, thread.ErrNotFound) {
		t.Errorf("read in the file that was set aside: %v", err)
	}
	if lost, err := old.Lost(ctx); !lost || err != nil {
		t.Errorf("lost %v, %v", lost, err)
	}
	for mustRegister(t, old, newThread("more", "")); ; {
		if _, open := <-changes; !open {
			t.Fatal("the listener was not told of a commit to the new file")
		}
		if _, err := reader.Get(ctx, thread.NewID("more", testTime, 1)); err == nil {
			break
		}
	}
}

// TestEndOfTheReplaced: closing what was set aside leaves the log of the new one
// in place, which holds all that was written to it.
func TestEndOfTheReplaced(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	old := open(t, dir, Options{})
	mustRegister(t, old, newThread("before", ""))
	if aside, err := sharedfile.SetAside(old.registry.path, old.registry.path+asideMark, testTime); err != nil || !sharedfile.Exists(aside+"-wal") {
		t.Fatalf("moved to %q, %v", aside, err)
	}
	replacing := open(t, dir, Options{})
	first := mustRegister(t, replacing, newThread("first", ""))
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	second := mustRegister(t, replacing, newThread("second", ""))
	another := open(t, dir, Options{})
	third := mustRegister(t, another, newThread("third", ""))
	for _, s := range []*Store{replacing, another} {
		for _, id := range []thread.ID{first, second, third} {
			if _, err := s.Get(t.Context(), id); err != nil {
				t.Error(err)
			}
		}
		if err := s.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestFollowFails: what replaced the file is not usable here.
func TestFollowFails(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	s := open(t, dir, Options{})
	if _, err := sharedfile.SetAside(s.registry.path, s.registry.path+asideMark, testTime); err != nil {
		t.Fatal(err)
	}
	newer := open(t, dir, Options{})
	if err := beside(t, newer.registry, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, _, err := store.Register(t.Context(), s, newThread("d", ""), claimNothing); !errors.Is(err, store.ErrReplaced) || !errors.Is(err, store.ErrTooNew) {
			t.Errorf("register: %v", err)
		}
		if _, err := s.Get(t.Context(), "d"); !errors.Is(err, store.ErrReplaced) {
			t.Errorf("get: %v", err)
		}
	}
}

// TestRescueAtOnce has processes that meet one damaged registry at the same time.
// One of them sets it aside, and every thread is restored once.
func TestRescueAtOnce(t *testing.T) {
	t.Parallel()
	dir := filled(t)
	damage(t, filepath.Join(dir, registryFile), damages["cut to half"])
	players := make([]*crowdtest.Player, 6)
	for i := range players {
		players[i] = start(t, "rescue", dir)
		if got := players[i].Line(); got != "ready" {
			t.Fatalf("process said %q", got)
		}
	}
	for _, p := range players {
		p.GoAhead(t)
	}
	moved, restored := 0, 0
	for _, p := range players {
		var aside, rows int
		if _, err := fmt.Sscan(p.Line(), &aside, &rows); err != nil {
			t.Fatal(err)
		}
		moved, restored = moved+aside, restored+rows
		p.AwaitEnd(t, false)
	}
	if moved != 1 || restored != 50 {
		t.Errorf("set aside %d times, %d rows restored", moved, restored)
	}
	s := open(t, dir, Options{})
	if rows, _, err := s.List(t.Context(), store.Filter{Limit: store.MaxPage}); err != nil || len(rows) != 50+len(players) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// playRescue brings a damaged store back with fifty threads, registers one more
// and says how often it set a file aside and how many rows it added.
func playRescue(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	moved := 0
	s, err := Open(ctx, dir, Options{})
	for damaged := new(store.CorruptError); errors.As(err, &damaged) || (err == nil && errors.As(s.Check(ctx), &damaged)); s, err = Open(ctx, dir, Options{}) {
		if s != nil {
			if err := s.Close(); err != nil {
				return err
			}
		}
		aside, err := SetAside(ctx, damaged.Path, testTime, nil)
		if err != nil {
			return err
		}
		if aside != "" {
			moved++
		}
	}
	if err != nil {
		return err
	}
	threads := make([]store.Restored, 50)
	for i := range threads {
		threads[i].Record = thread.Record{
			ThreadID: thread.ID(fmt.Sprintf("back-%d", i)), Kind: thread.KindDirective, Directive: "back", Status: thread.Created,
			CreatedAt: testTime, UpdatedAt: testTime, LastUsed: testTime,
		}
	}
	done, err := s.Restore(ctx, threads)
	if err != nil {
		return err
	}
	if _, _, err := store.Register(ctx, s, newThread("d", ""), claimNothing); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, moved, done.Threads); err != nil {
		return err
	}
	return s.Close()
}
