//go:build linux || darwin

package sqlite

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite/sharedfile"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest/crowdtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// impatient gives up at once on a process that is suspended, and never on others.
func impatient() Options {
	here := process.Here("host")
	return Options{
		Poll: time.Hour, Patience: Patience{Idle: time.Hour, Stopped: time.Millisecond}, Process: thread.Process(here.Self()),
		Holder: func(recorded thread.Process, files ...string) thread.Holder {
			id, stopped := here.Holder(process.ID(recorded), files...)
			return thread.Holder{Process: thread.Process(id), Near: here.Reach(id) == process.Near, Stopped: stopped}
		},
	}
}

// suspend stops a process, which happens a moment after the signal.
func suspend(t *testing.T, p *crowdtest.Player) {
	t.Helper()
	if err := p.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for !process.Stopped(p.Cmd.Process.Pid) {
		runtime.Gosched()
	}
	t.Cleanup(func() { _ = p.Cmd.Process.Signal(syscall.SIGCONT) })
}

// wantBusy wants the error to name the process, as one that is suspended.
func wantBusy(t *testing.T, what string, err error, p *crowdtest.Player) {
	t.Helper()
	busy, ok := errors.AsType[*thread.BusyError](err)
	if !ok || busy.Holder.PID != p.Cmd.Process.Pid || !busy.Holder.Stopped || !busy.Holder.Near {
		t.Errorf("%s beside suspended process %d: %v", what, p.Cmd.Process.Pid, err)
	}
}

// TestAttackStoppedHolder: a process is suspended while it has the turn to write, in
// the middle of a transaction. Others open and read, a write says at once which process
// is in the way, and all goes on when that is continued.
func TestAttackStoppedHolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, impatient())
	id := mustRegister(t, s, newThread("d", ""))
	holder := start(t, "hold", dir)
	if got := holder.Line(); got != "held" {
		t.Fatalf("holder said %q", got)
	}
	suspend(t, holder)

	for range 2 { // the second does not wait again
		_, _, err := store.Register(t.Context(), s, newThread("d", ""), claimNothing)
		wantBusy(t, "registering", err, holder)
	}
	_, err := s.RequestCancel(t.Context(), id, "", testTime)
	wantBusy(t, "cancelling", err, holder)
	wantBusy(t, "a turn", s.Writable(t.Context()), holder)
	late := open(t, dir, impatient())
	for _, reader := range []*Store{s, late} {
		if rec, err := reader.Get(t.Context(), id); err != nil || rec.Status != thread.Created {
			t.Errorf("read %+v, %v", rec, err)
		}
		if rows, _, err := reader.List(t.Context(), store.Filter{}); err != nil || len(rows) != 1 {
			t.Errorf("listed %d, %v", len(rows), err)
		}
	}
	if err := s.OpenRoot(t.Context(), id, 1, testTime); err != nil {
		t.Errorf("the other database: %v", err)
	}

	if err := holder.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	holder.GoAhead(t)
	holder.AwaitEnd(t, false)
	mustRegister(t, s, newThread("d", ""))
}

// TestAttackStoppedWaiter: a process is suspended while it stands first among those who
// wait for a turn. The others have their turns all the same.
func TestAttackStoppedWaiter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, impatient())
	gate := start(t, "gate", dir)
	if got := gate.Line(); got != "in the gate" {
		t.Fatalf("it said %q", got)
	}
	suspend(t, gate)
	for range 3 {
		mustRegister(t, s, newThread("d", ""))
	}
	gate.Kill(t)
	gate.AwaitEnd(t, true)
	mustRegister(t, s, newThread("d", ""))
}

// TestAttackStoppedStranger: a program that does not queue is suspended in a
// transaction of SQLite's own. A write names it and changes nothing.
func TestAttackStoppedStranger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, impatient())
	id := mustRegister(t, s, newThread("d", ""))
	stranger := start(t, "stranger", dir)
	if got := stranger.Line(); got != "in a transaction" {
		t.Fatalf("it said %q", got)
	}
	suspend(t, stranger)
	_, _, err := store.Register(t.Context(), s, newThread("d", ""), claimNothing)
	if runtime.GOOS == "linux" {
		wantBusy(t, "registering", err, stranger)
	} else if _, ok := errors.AsType[*thread.BusyError](err); !ok {
		t.Errorf("registering: %v", err)
	}
	if _, err := s.Get(t.Context(), id); err != nil {
		t.Errorf("read: %v", err)
	}
	stranger.Kill(t)
	stranger.AwaitEnd(t, true)
	mustRegister(t, s, newThread("d", ""))
}

// TestBusyIsPatient: a holder that runs is waited for as long as it commits, and for
// the patience with it when it does not.
func TestBusyIsPatient(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir, Options{})
	holder := start(t, "hold", dir)
	if got := holder.Line(); got != "held" {
		t.Fatalf("holder said %q", got)
	}
	options := impatient()
	options.Patience.Idle = 2 * time.Millisecond
	s := open(t, dir, options)
	_, _, err := store.Register(t.Context(), s, newThread("d", ""), claimNothing)
	busy, ok := errors.AsType[*thread.BusyError](err)
	if !ok || busy.Holder.Stopped || busy.Holder.PID != holder.Cmd.Process.Pid || busy.Waited < options.Patience.Idle {
		t.Errorf("registering: %v", err)
	}
	holder.GoAhead(t)
	holder.AwaitEnd(t, false)
}

// playGate has the gate of the registry until it is ended.
func playGate(dir string, out io.Writer) error {
	gate, err := os.OpenFile(lockPath(dir, "registry")+".gate", os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(gate.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if _, err := io.WriteString(out, "in the gate\n"); err != nil {
		return err
	}
	select {}
}

// playStranger has a transaction open in the registry without a turn until it is
// ended.
func playStranger(ctx context.Context, dir string, out io.Writer) error {
	db := sharedfile.Pool(dir+"/"+registryFile, 1)
	if _, err := db.BeginTx(ctx, nil); err != nil {
		return err
	}
	if _, err := io.WriteString(out, "in a transaction\n"); err != nil {
		return err
	}
	select {}
}

func init() { //nolint:gochecknoinits // the roles of one operating system
	systemRoles["gate"] = func(_ context.Context, dir string) error { return playGate(dir, os.Stdout) }
	systemRoles["stranger"] = func(ctx context.Context, dir string) error { return playStranger(ctx, dir, os.Stdout) }
}

// FuzzDecodeProcess: whatever stands in a lock file, reading it names some process or none.
func FuzzDecodeProcess(f *testing.F) {
	f.Add(encodeProcess(thread.Process{PID: 4711, Host: "h", Boot: "b", PIDNamespace: "1", Started: 5}))
	f.Add([]byte(`{"PID":-1}`))
	f.Fuzz(func(t *testing.T, record []byte) {
		if p := decodeProcess(record); p.PID < 0 {
			t.Errorf("%+v", p)
		}
	})
}
