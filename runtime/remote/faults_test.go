package remote_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/remote"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/recordserver"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/alloctest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestServerAway: a checkpoint waits for a server that comes back, and fails where it does
// not. The next checkpoint ships all that was written meanwhile, in order and once.
func TestServerAway(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{})
	f := newFleet(t)
	f.url = cluster.Database(t)
	a, b := f.machine(t), f.machine(t)
	_, w := a.begins(t)
	write(t, w, "before\n")
	must(t, w.Sync())
	for n, stop := range []func(testing.TB){cluster.Stop, cluster.Kill} {
		stop(t)
		a.Patience = time.Millisecond
		write(t, w, fmt.Sprintln("away", n))
		if err := w.Sync(); err == nil {
			t.Error("it is synced without a server")
		}
		a.Patience = time.Minute
		write(t, w, fmt.Sprintln("back", n))
		synced := make(chan error)
		go func() { synced <- w.Sync() }()
		cluster.Up(t)
		must(t, <-synced)
	}
	must(t, w.Close())
	if got := read(t, b, id); got != "before\naway 0\nback 0\naway 1\nback 1\n" {
		t.Errorf("it reads %q", got)
	}
}

// readAndDie is a reader that is killed at a crash point.
func readAndDie(m *machine) error {
	m.Crashpoints = dieAt(os.Getenv(atVariable), 1)
	_, err := readAll(m.Of(id).Transcript())
	return errors.Join(err, errors.New("it was not killed"))
}

// TestKilledReader: a reader is killed when it has copied something and not said so. The
// next one reads what is there, however that has changed meanwhile.
func TestKilledReader(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, m *machine, run thread.Run){
		"the same": func(*testing.T, *machine, thread.Run) {},
		"more": func(t *testing.T, m *machine, run thread.Run) {
			t.Helper()
			w, err := m.By(id, run).Transcript().Append()
			must(t, err)
			write(t, w, "more\n")
			must(t, w.Close())
		},
		"another": func(t *testing.T, m *machine, run thread.Run) {
			t.Helper()
			w, err := m.By(id, run).Transcript().Append()
			must(t, err)
			must(t, w.Truncate(4))
			write(t, w, "another\n")
			must(t, w.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			a, b := f.machine(t), f.machine(t)
			run, w := a.begins(t)
			write(t, w, "one\ntwo\n")
			must(t, w.Close())
			wantKilled(t, f.process(t, b, "read", atVariable+"="+string(remote.CrashCopied)))
			change(t, a, run)
			if got, want := read(t, b, id), read(t, a, id); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestAttackForgedRows: somebody who may write to the database changes records there: bytes, places, sizes, names and hashes.
// Reading ends in an error and never gives other content, writes no file outside of the thread's folder, and takes little
// memory.
func TestAttackForgedRows(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	hash := strings.Repeat("ab", 32)
	for name, forged := range map[string]string{
		"bytes":                 `UPDATE record_chunks SET bytes = convert_to(repeat('x', size), 'UTF8')`,
		"hash":                  `UPDATE record_chunks SET sha256 = sha256('')`,
		"place":                 `UPDATE record_chunks SET at = at + 1`,
		"less than it says":     `UPDATE record_files SET size = size + 1`,
		"far less":              `UPDATE record_files SET size = 1::bigint << 62`,
		"nothing":               `DELETE FROM record_chunks`,
		"content":               `UPDATE blob_chunks SET bytes = 'other'`,
		"less content":          `UPDATE blobs SET size = 1::bigint << 62`,
		"a name that leads out": `UPDATE record_artifacts SET name = '../../../../' || name`,
		"no name of ours":       `UPDATE record_artifacts SET name = 'thread.json'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			a, b := f.machine(t), f.machine(t)
			of := a.Of(id)
			must(t, errors.Join(of.Prepare(), of.Meta().Write(meta(thread.Completed, 1))))
			_, err := of.Artifacts().Write(hash, []byte("kept"))
			must(t, err)
			w, err := of.Transcript().Append()
			must(t, err)
			write(t, w, "one\ntwo\n")
			must(t, w.Close())
			_, err = a.store.Pool().Exec(context.Background(), forged)
			must(t, err)
			_, noMeta := b.Of(id).Meta().Read()
			words, noWords := readAll(b.Of(id).Transcript())
			kept, noArtifact := b.Of(id).Artifacts().Load(hash)
			if noWords == nil && words != "one\ntwo\n" || noArtifact == nil && string(kept) != "kept" {
				t.Errorf("it reads %q and %q", words, kept)
			}
			if noMeta == nil && noWords == nil && noArtifact == nil {
				t.Error("nobody noticed")
			}
			for _, path := range []string{b.dir + "/../" + hash + ".txt", b.dir + "/" + hash + ".txt", b.dir + "/work/" + hash + ".txt"} {
				if _, err := os.Lstat(path); err == nil {
					t.Errorf("%s was written", path)
				}
			}
		})
	}
}

// largeBytes is how much a large transcript has.
const largeBytes = 64 << 20

// peak is the most memory that this process had, in bytes.
func peak() (bytes int64, err error) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		if _, err := fmt.Sscanf(scan.Text(), "VmHWM: %d kB", &bytes); err == nil {
			return bytes << 10, nil
		}
	}
	return 0, errors.New("the system does not say")
}

// maxPeak is what a process may take that ships or copies a large transcript: it takes 25 MiB at rest,
// a page of chunks is 4 MiB, and garbage comes on top; to have all in memory would be 90.
const maxPeak = 80 << 20

// moveLarge ships a large transcript, or copies it, and says what that took.
func moveLarge(m *machine) error {
	run := thread.Run(os.Getenv("REMOTE_RUN"))
	if run == "" {
		r, err := m.Of(id).Transcript().Open()
		if err != nil {
			return err
		}
		if size, err := r.Size(); err != nil || size != largeBytes {
			return fmt.Errorf("%d bytes, %w", size, err)
		}
	} else {
		if err := m.By(id, run).Prepare(); err != nil {
			return err
		}
		w, err := m.By(id, run).Transcript().Append()
		if err != nil {
			return err
		}
		line := []byte(strings.Repeat("x", 64<<10-1) + "\n")
		for range largeBytes / len(line) {
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
		if err := errors.Join(w.Sync(), w.Close()); err != nil {
			return err
		}
	}
	most, err := peak()
	if err == nil && most > maxPeak {
		err = fmt.Errorf("it took %d MiB", most>>20)
	}
	if err == nil {
		os.Exit(0)
	}
	return err
}

// TestLarge: a large transcript is shipped and copied a page at a time.
func TestLarge(t *testing.T) {
	longtest.Mark(t)
	alloctest.NotUnderRace(t)
	if _, err := peak(); err != nil {
		t.Skip(err)
	}
	f := newFleet(t)
	a, b := f.machine(t), f.machine(t)
	run := thread.NewRun()
	a.registered(t, id, run)
	must(t, f.process(t, a, "large", "REMOTE_RUN="+string(run)).Run())
	must(t, f.process(t, b, "large", "REMOTE_RUN=").Run())
	var chunks, bytes int64
	must(t, a.store.Pool().QueryRow(t.Context(), `SELECT count(*), sum(size) FROM record_chunks`).Scan(&chunks, &bytes))
	if bytes != largeBytes || chunks != largeBytes/recordserver.ChunkBytes {
		t.Errorf("%d bytes in %d chunks", bytes, chunks)
	}
}
