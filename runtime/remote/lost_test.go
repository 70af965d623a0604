package remote_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/recordserver"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestLostByServer: a server that has lost the last of what was shipped, as a standby that
// is promoted has, or all of it, gets it again.
func TestLostByServer(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, lost := range map[string][]string{
		"the last": {
			`DELETE FROM record_chunks WHERE name = 'transcript.jsonl' AND at = 4`, `UPDATE record_files SET size = 4, content = 4 WHERE name = 'transcript.jsonl'`,
			`DELETE FROM record_artifacts`, `DELETE FROM blobs`, `DELETE FROM record_files WHERE name = 'capabilities.md'`,
		},
		"all": {`DELETE FROM record_files`, `DELETE FROM record_artifacts`, `DELETE FROM blobs`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantShippedAgain(t, lost)
		})
	}
}

// wantShippedAgain has a server lose something while a thread runs.
func wantShippedAgain(t *testing.T, lost []string) {
	t.Helper()
	f := newFleet(t)
	a, b := f.machine(t), f.machine(t)
	run, w := a.begins(t)
	of := a.By(id, run)
	must(t, of.Meta().Write(meta(thread.Created, 0)))
	write(t, w, "one\n")
	must(t, w.Sync())
	write(t, w, "two\n")
	sum := sha256.Sum256([]byte("kept"))
	hash := hex.EncodeToString(sum[:])
	_, err := of.Artifacts().Write(hash, []byte("kept"))
	must(t, errors.Join(err, of.Meta().Write(meta(thread.Running, 1)), of.Capabilities().Write([]byte("what it may\n"))))
	before := stored(t, a)
	must(t, w.Sync())
	if got := read(t, b, id); got != "one\ntwo\n" {
		t.Fatalf("%q", got)
	}
	for _, statement := range lost {
		_, err := a.store.Pool().Exec(context.Background(), statement)
		must(t, err)
	}
	must(t, a.server.Put(t.Context(), recordserver.Writer{Thread: id, Run: run}, recordserver.Put{Name: "thread.json", Content: before}))
	write(t, w, "three\n")
	must(t, errors.Join(w.Sync(), w.Close()))
	for _, m := range []*machine{a, b} {
		if got := read(t, m, id); got != "one\ntwo\nthree\n" {
			t.Errorf("%q", got)
		}
		if got, err := m.Of(id).Meta().Read(); err != nil || got.Status != thread.Running {
			t.Errorf("metadata of a thread that is %s, %v", got.Status, err)
		}
		if got, err := readAll(m.Of(id).Capabilities()); err != nil || got != "what it may\n" {
			t.Errorf("capabilities %q, %v", got, err)
		}
		if got, err := m.Of(id).Artifacts().Load(hash[:16]); err != nil || string(got) != "kept" {
			t.Errorf("artifact %q, %v", got, err)
		}
	}
}

// TestGoneForGood: what a run writes is refused when its transcript is not there because the
// thread has ended, or another process of the run has taken it since it was lost; and when the row
// has no run.
func TestGoneForGood(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, m *machine, run thread.Run){
		"ended": func(t *testing.T, m *machine, _ thread.Run) {
			t.Helper()
			_, err := m.store.Pool().Exec(t.Context(), `DELETE FROM record_files; UPDATE threads SET status = 'completed', result = '{}', completed_at = updated_at`)
			must(t, err)
		},
		"taken": func(t *testing.T, m *machine, run thread.Run) {
			t.Helper()
			_, err := m.store.Pool().Exec(t.Context(), `DELETE FROM record_files`)
			must(t, err)
			must(t, m.server.Take(t.Context(), recordserver.Writer{Thread: id, Run: run, Token: "another"}, "transcript.jsonl", nil))
		},
		"without a run": func(t *testing.T, m *machine, _ thread.Run) {
			t.Helper()
			_, err := m.store.Pool().Exec(t.Context(), `UPDATE threads SET run = ''`)
			must(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newFleet(t).machine(t)
			run, w := a.begins(t)
			write(t, w, "one\n")
			must(t, w.Sync())
			change(t, a, run)
			write(t, w, "two\n")
			if err := w.Sync(); !errors.Is(err, store.ErrFenced) {
				t.Errorf("it is synced: %v", err)
			}
		})
	}
}

// TestRefusedForGood: a checkpoint that the server refuses for its content, or for its sender, is
// not tried again.
func TestRefusedForGood(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, refused := range []string{
		`ALTER TABLE record_chunks ADD CHECK (size < 1)`,
		`ALTER TABLE record_chunks RENAME TO elsewhere`,
	} {
		a := newFleet(t).machine(t)
		a.Patience = time.Hour
		_, w := a.begins(t)
		_, err := a.store.Pool().Exec(t.Context(), refused)
		must(t, err)
		write(t, w, "one\n")
		if err := w.Sync(); !recordserver.Final(err) {
			t.Errorf("%s: %v", refused, err)
		}
	}
}

// stored is the metadata of the thread that the server has.
func stored(t testing.TB, m *machine) []byte {
	t.Helper()
	content, _, err := m.server.Fetch(t.Context(), id, "thread.json", nil, 1<<20)
	must(t, err)
	return content
}
