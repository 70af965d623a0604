package remote_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/remote"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

const id thread.ID = "work/one-1772357400"

// registered puts a row of a running thread into the registry.
func (m *machine) registered(t testing.TB, id thread.ID, run thread.Run) {
	t.Helper()
	_, err := m.store.Pool().Exec(t.Context(), `INSERT INTO threads (thread_id, kind, directive, status, run, created_at, updated_at, last_used)
		VALUES ($1, 'directive', 'work/one', 'running', $2, 1, 1, 1)`, string(id), string(run))
	must(t, err)
}

// begins has the thread run on the machine, with a transcript that it writes to.
func (m *machine) begins(t testing.TB) (run thread.Run, w records.Appender) {
	t.Helper()
	run = thread.NewRun()
	m.registered(t, id, run)
	must(t, m.By(id, run).Prepare())
	w, err := m.By(id, run).Transcript().Append()
	must(t, err)
	return run, w
}

// dieAt kills this process when it comes to a crash point for the nth time.
func dieAt(point string, nth int) thread.Crashpoints {
	return func(p thread.Crashpoint) {
		if string(p) != point {
			return
		}
		if nth--; nth == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

// wantKilled runs a process that dies at a crash point.
func wantKilled(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	exit, ok := errors.AsType[*exec.ExitError](cmd.Run())
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("it ended with %v", exit)
	}
}

// replaced gives the thread another run.
func (m *machine) replaced(t testing.TB, id thread.ID, run thread.Run) {
	t.Helper()
	_, err := m.store.Pool().Exec(t.Context(), `UPDATE threads SET run = $2 WHERE thread_id = $1`, string(id), string(run))
	must(t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func meta(status thread.State, turns int) thread.Meta {
	at := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	return thread.Meta{ThreadID: id, Kind: thread.KindDirective, Directive: "work/one", Status: status, CreatedAt: at, UpdatedAt: at, Cost: thread.Cost{Turns: turns}}
}

// read is the whole transcript, as a machine sees it.
func read(t testing.TB, r records.Records, id thread.ID) string {
	t.Helper()
	content, err := readAll(r.Of(id).Transcript())
	must(t, err)
	return content
}

func readAll(from records.Source) (string, error) {
	r, err := from.Open()
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(io.NewSectionReader(r, 0, math.MaxInt64))
	return string(content), errors.Join(err, r.Close())
}

func write(t testing.TB, w io.Writer, text string) {
	t.Helper()
	_, err := io.WriteString(w, text)
	must(t, err)
}

// TestOtherMachine: another machine finds what a thread has written up to its last
// checkpoint, and the rest when it is shipped, whatever its own folder had.
func TestOtherMachine(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	f := newFleet(t)
	a, b := f.machine(t), f.machine(t)
	run := thread.NewRun()
	a.registered(t, id, run)
	at := a.By(id, run)
	must(t, errors.Join(at.Prepare(), at.Meta().Write(meta(thread.Created, 0))))
	w, err := at.Transcript().Append()
	must(t, err)
	defer func() { _ = w.Close() }()
	must(t, at.Meta().Write(meta(thread.Running, 0))) // goes with the checkpoint
	must(t, at.Capabilities().Write([]byte("what it may\n")))
	content := []byte(strings.Repeat("large result\n", 100_000))
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	_, err = at.Artifacts().Write(hash, content)
	must(t, err)
	write(t, w, "one\n")
	if got, err := b.Of(id).Meta().Read(); err != nil || got.Status != thread.Created {
		t.Errorf("before the checkpoint the other reads %s, %v", got.Status, err)
	}
	if got := read(t, b, id); got != "" {
		t.Errorf("before the checkpoint the other reads %q", got)
	}
	if got := read(t, a, id); got != "one\n" {
		t.Errorf("where it is written %q is read", got)
	}
	must(t, w.Sync())
	write(t, w, "two\n")
	if got := read(t, b, id); got != "one\n" {
		t.Errorf("after the checkpoint the other reads %q", got)
	}
	if got, err := b.Of(id).Meta().Read(); err != nil || got.Status != thread.Running {
		t.Errorf("after the checkpoint the other reads %s, %v", got.Status, err)
	}
	if got, err := b.Of(id).Artifacts().Load(hash[:16]); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes of an artifact, %v", len(got), err)
	}
	if got, err := readAll(b.Of(id).Capabilities()); err != nil || got != "what it may\n" {
		t.Errorf("capabilities %q, %v", got, err)
	}
	must(t, w.Sync())
	for n, damage := range []func(path string) error{
		func(string) error { return nil },
		os.Remove,
		func(path string) error { return os.WriteFile(path, []byte("something else, and longer"), 0o600) },
		func(path string) error { return os.WriteFile(path, []byte("one\nTWO\n"), 0o600) },
		func(path string) error { return os.Truncate(path, 3) },
	} {
		c, err := open(f.url, b.dir, f.seal) // after a restart of that machine nothing of its folder is believed
		must(t, err)
		c.Boot = fmt.Sprint("boot ", n)
		must(t, damage(b.Of(id).Transcript().Where()))
		if got := read(t, c, id); got != "one\ntwo\n" {
			t.Errorf("in the end the other reads %q", got)
		}
		c.stop()
	}
}

// TestTail: a follower on another machine is told each second what a thread writes, in
// order and once, and not only at checkpoints.
func TestTail(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	f := newFleet(t)
	a, b := f.machine(t), f.machine(t)
	run := thread.NewRun()
	a.registered(t, id, run)
	must(t, a.By(id, run).Prepare())
	w, err := transcript.Open(a.By(id, run).Transcript(), id, transcript.Options{Signer: f.seal.Key()})
	must(t, err)
	written, stop := b.Of(id).Transcript().Watch()
	defer stop()
	deadline := time.After(time.Minute)
	cursor, seen := "", 0
	for n := range 3 {
		must(t, w.Append(thread.EventCognitionOut, transcript.CognitionOut{Turn: n + 1}))
		for seen <= n { // no checkpoint comes
			page, err := transcript.Tail(b.Of(id).Transcript(), transcript.TailOptions{Cursor: cursor})
			if err == nil {
				cursor, seen = page.Next, seen+strings.Count(page.Content, "\n")
			} else if !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if seen > n {
				break
			}
			select {
			case <-written:
			case <-deadline:
				t.Fatalf("%d of %d events came", seen, n+1)
			}
		}
		if seen != n+1 {
			t.Fatalf("%d events after %d were written", seen, n+1)
		}
	}
	must(t, w.Close())
}

// TestAttackReplacedRun: the run of a thread is replaced while its process is suspended, and that goes on to write
// afterwards. Nothing of what it writes reaches the server, not even what it wrote before and had not shipped.
func TestAttackReplacedRun(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	f := newFleet(t)
	a, b := f.machine(t), f.machine(t)
	old, now := thread.NewRun(), thread.NewRun()
	a.registered(t, id, old)
	stale := a.By(id, old)
	must(t, errors.Join(stale.Prepare(), stale.Meta().Write(meta(thread.Running, 0))))
	paused, err := stale.Transcript().Append()
	must(t, err)
	write(t, paused, "shipped\n")
	must(t, paused.Sync())
	write(t, paused, "kept back\n")
	_, err = stale.Artifacts().Write(strings.Repeat("ab", 32), []byte("kept back"))
	must(t, err)

	a.replaced(t, id, now)
	w, err := b.By(id, now).Transcript().Append()
	must(t, err)
	write(t, w, "settled\n")
	must(t, errors.Join(w.Sync(), b.By(id, now).Meta().Write(meta(thread.Error, 1)), w.Close()))

	for what, err := range map[string]error{
		"checkpoint": paused.Sync(), "metadata": stale.Meta().Write(meta(thread.Completed, 2)), "capabilities": a.By(id, old).Capabilities().Write([]byte("all")),
		"no metadata": stale.Meta().Remove(), "closing": paused.Close(),
	} {
		if what != "capabilities" && !errors.Is(err, store.ErrFenced) { // these wait for the checkpoint
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := stale.Transcript().Append(); !errors.Is(err, store.ErrFenced) {
		t.Errorf("beginning again: %v", err)
	}
	if err := stale.Meta().Write(meta(thread.Running, 3)); !errors.Is(err, store.ErrFenced) {
		t.Errorf("metadata of a thread that goes on: %v", err)
	}
	for name, m := range map[string]*machine{"its machine": a, "the other": b} {
		if got := read(t, m, id); got != "shipped\nsettled\n" {
			t.Errorf("%s reads %q", name, got)
		}
		if got, err := m.Of(id).Meta().Read(); err != nil || got.Status != thread.Error {
			t.Errorf("%s reads %s, %v", name, got.Status, err)
		}
		if list, err := m.Of(id).Artifacts().List(); err != nil || len(list) != 0 {
			t.Errorf("%s lists %v, %v", name, list, err)
		}
	}
	if _, err := a.Of(id).Transcript().Append(); !errors.Is(err, store.ErrFenced) {
		t.Errorf("by no run: %v", err)
	}
}

// writeAndDie is a thread's process that is killed at a crash point.
func writeAndDie(m *machine) error {
	m.Crashpoints = dieAt(os.Getenv(atVariable), 1)
	of := m.By(id, thread.Run(os.Getenv("REMOTE_RUN")))
	if err := errors.Join(of.Prepare(), of.Meta().Write(meta(thread.Created, 0))); err != nil {
		return err
	}
	w, err := of.Transcript().Append()
	if err == nil {
		err = of.Capabilities().Write([]byte("all"))
	}
	if err != nil {
		return err
	}
	for n := range 2 {
		text := fmt.Sprintf("result %d", n)
		sum := sha256.Sum256([]byte(text))
		if _, err := of.Artifacts().Write(hex.EncodeToString(sum[:]), []byte(text)); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "turn %d\n", n); err != nil {
			return err
		}
		if err := w.Sync(); err != nil {
			return err
		}
	}
	return errors.New("it was not killed")
}

// TestKilled kills the process of a thread between every two steps of shipping, and has
// the same machine, or another, settle it. Both then read the same, whole, and nothing that
// was shipped is missing.
func TestKilled(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, point := range remote.Crashpoints() {
		if point == remote.CrashCopied {
			continue // of readers, see TestKilledReader
		}
		for _, where := range []string{"here", "elsewhere"} {
			t.Run(string(point)+" "+where, func(t *testing.T) {
				t.Parallel()
				f := newFleet(t)
				a, b := f.machine(t), f.machine(t)
				run, next := thread.NewRun(), thread.NewRun()
				a.registered(t, id, run)
				wantKilled(t, f.process(t, a, "write", atVariable+"="+string(point), "REMOTE_RUN="+string(run)))
				settler := map[string]*machine{"here": a, "elsewhere": b}[where]
				a.replaced(t, id, next)
				of := settler.By(id, next)
				must(t, of.Prepare())
				w, err := of.Transcript().Append()
				must(t, err)
				write(t, w, "end\n")
				must(t, errors.Join(w.Sync(), of.Meta().Write(meta(thread.Error, 1)), w.Close()))
				got := read(t, a, id)
				if other := read(t, b, id); other != got {
					t.Errorf("one reads %q, the other %q", got, other)
				}
				turns := strings.TrimSuffix(got, "end\n")
				want := map[bool][]string{true: {"", "turn 0\n", "turn 0\nturn 1\n"}, false: {"turn 0\n", "turn 0\nturn 1\n"}}
				mayBeLost := point != remote.CrashShipped && (where == "elsewhere" || point != remote.CrashSynced)
				if !slices.Contains(want[mayBeLost], turns) {
					t.Errorf("left is %q", got)
				}
				for _, m := range []*machine{a, b} {
					if now, err := m.Of(id).Meta().Read(); err != nil || now.Status != thread.Error {
						t.Errorf("it is %s, %v", now.Status, err)
					}
					if could, err := readAll(m.Of(id).Capabilities()); turns != "" && could != "all" {
						t.Errorf("of %q nobody knows what it could do: %q, %v", turns, could, err)
					}
					list, err := m.Of(id).Artifacts().List()
					if err != nil || len(list) < strings.Count(turns, "turn") {
						t.Errorf("%d artifacts of %q, %v", len(list), turns, err)
					}
					for _, artifact := range list {
						if _, err := m.Of(id).Artifacts().Load(artifact.Name[:64]); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
}

// TestDeleted: records that are removed are gone on each machine, and contents with the
// last thread that has them.
func TestDeleted(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	f := newFleet(t)
	a, b := f.machine(t), f.machine(t)
	text := []byte("shared result")
	sum := sha256.Sum256(text)
	for _, id := range []thread.ID{id, "other-1"} {
		of := a.Of(id)
		m := meta(thread.Completed, 1)
		m.ThreadID = id
		must(t, errors.Join(of.Prepare(), of.Meta().Write(m)))
		_, err := of.Artifacts().Write(hex.EncodeToString(sum[:]), text)
		must(t, err)
		w, err := of.Transcript().Append()
		must(t, err)
		write(t, w, "words\n")
		must(t, errors.Join(w.Sync(), w.Close()))
		read(t, b, id)
	}
	contents := func() (n int) {
		must(t, a.store.Pool().QueryRow(t.Context(), `SELECT count(*) FROM blobs`).Scan(&n))
		return n
	}
	if n := contents(); n != 1 {
		t.Errorf("the content is kept %d times", n)
	}
	for left, id := range []thread.ID{"other-1", id} {
		must(t, errors.Join(b.Of(id).Whole().Remove(), b.Of(id).Whole().Remove()))
		for _, m := range []*machine{a, b} {
			_, meta := m.Of(id).Meta().Read()
			_, words := m.Of(id).Transcript().Open()
			begun, err := m.Of(id).Begun()
			if !errors.Is(meta, thread.ErrNoMeta) || !errors.Is(words, fs.ErrNotExist) || begun || err != nil {
				t.Errorf("%s: %v, %v, %t, %v", id, meta, words, begun, err)
			}
		}
		if n := contents(); n != 1-left {
			t.Errorf("%d contents are left", n)
		}
	}
	var gone []thread.ID
	note := func(ids []thread.ID) error {
		gone = append(gone, ids...)
		return nil
	}
	if n, err := a.Prune(t.Context(), note); n != 2 || len(gone) != 2 || err != nil {
		t.Errorf("%d copies were removed, of which told %v, %v", n, gone, err)
	}
	if files, err := filepath.Glob(filepath.Join(a.dir, "work", "*")); err != nil || len(files) > 0 {
		t.Errorf("left are %v, %v", files, err)
	}
}
