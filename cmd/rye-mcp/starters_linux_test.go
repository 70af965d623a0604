package main_test

import (
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// leaseOf is until when the lease of the run of a thread lasts; empty: it has none.
func (f *fleetPlace) leaseOf(id thread.ID) (until string) {
	f.Helper()
	var schema string
	f.row(`SELECT schema_name FROM rye.projects`, &schema)
	f.row(`SELECT coalesce(max(lease_until)::text, '') FROM rye.workers
		WHERE slots = 0 AND incarnation = substr((SELECT run FROM `+schema+`.threads WHERE thread_id = '`+string(id)+`'), 2, 10)`, &until)
	return until
}

// TestStarterGone: without workers a thread goes on for every machine when the server that has
// started it is gone, however that ended, and is dead for every machine once its own process is
// gone.
func TestStarterGone(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, end := range map[string]func(*host) error{
		"closed":     func(h *host) error { h.close(); return nil },
		"terminated": func(h *host) error { return h.cmd.Process.Signal(syscall.SIGTERM) },
		"killed":     func(h *host) error { return h.cmd.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleetPlace(t)
			starter, elsewhere := f.serve(), f.serve(f.machine("elsewhere")...)
			f.host = starter
			goesOn, _ := f.running("slow", "")
			dies, pid := f.running("slow", "")
			f.noError(end(starter))
			f.wantGone(starter.cmd.Process.Pid)
			f.host = elsewhere
			before := f.leaseOf(goesOn)
			for range 4 { // the time that it has is over by then
				f.until(func() (bool, string) {
					after := f.leaseOf(goesOn)
					renewed := after != before && after != ""
					if renewed {
						before = after
					}
					return renewed, "the lease is " + after
				})
			}
			for _, id := range []thread.ID{goesOn, dies} {
				if status := f.status(id); status.Status != thread.Running {
					t.Fatalf("its starter gone, it is %s: %s", status.Status, status.Error)
				}
			}
			f.noError(syscall.Kill(pid, syscall.SIGKILL))
			f.wantEndAs(dies, thread.Error)
			f.model.release()
			f.wantEndAs(goesOn, thread.Completed)
			f.until(func() (bool, string) { left := f.leaseOf(goesOn); return left == "", "it has a lease until " + left })
		})
	}
}

// TestOrphanSuspended: a thread whose starter is gone is suspended past its lease. Another
// machine ends it, once, and what goes on then writes nothing.
func TestOrphanSuspended(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	f := newFleetPlace(t)
	starter := f.serve()
	f.host = starter
	id, pid := f.running("slow", "")
	f.suspend(pid)
	starter.close()
	f.host = f.serve(f.machine("elsewhere")...)
	f.until(func() (bool, string) { // a wait ends when it sees that the process is suspended
		status := f.status(id)
		return status.Status == thread.Error, "it is " + string(status.Status)
	})
	before := f.kept(id)
	f.model.release() // it has an answer to write
	f.noError(syscall.Kill(pid, syscall.SIGCONT))
	f.wantGone(pid)
	if after := f.kept(id); after != before {
		t.Errorf("the thread that was ended is now\n%s\nit was\n%s", after, before)
	}
}
