package main_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// fleetPlace is a project on a shared store, from which threads are started; workers stand on
// machines of their own.
type fleetPlace struct {
	*place

	url  string
	rows *pgx.Conn
	host *host // starts threads, and looks at them
}

func newFleetPlace(t *testing.T) *fleetPlace {
	t.Helper()
	return newFleetPlaceOn(t, pgtest.Server(t), unconfigured())
}

// unconfigured is the project of the load tests without settings, which other machines would
// have to accept.
func unconfigured() string {
	before, settings, _ := strings.Cut(loaded, "-- .ai/config")
	_, model, _ := strings.Cut(settings, "-- model.yaml --")
	return before + "-- model.yaml --" + model
}

func newFleetPlaceOn(t *testing.T, url, archive string) *fleetPlace {
	t.Helper()
	f := &fleetPlace{place: newPlace(t, archive), url: url}
	_, err := sign.EnsureState(f.home(), nil)
	f.noError(err)
	f.env = append(f.env, storeurl.Variable+"="+f.url)
	f.connect()
	return f
}

// connect begins to look at the server that the URL leads to now.
func (f *fleetPlace) connect() {
	f.Helper()
	var err error
	f.rows, err = pgx.Connect(f.Context(), f.url)
	f.noError(err)
	rows := f.rows
	f.Cleanup(func() { _ = rows.Close(context.Background()) })
}

// runs is a worker that runs.
type runs struct {
	f      *fleetPlace
	cmd    *exec.Cmd
	joined chan string // its line for each time that it has joined
	log    string      // path
}

// work starts a worker on a machine of its own, and waits until it has joined.
func (f *fleetPlace) work(name string, more ...string) *runs {
	f.Helper()
	return f.workOn(name, f.machine(name), more...)
}

// workOn starts a worker on a machine, with more arguments.
func (f *fleetPlace) workOn(name string, machine []string, more ...string) *runs {
	f.Helper()
	w := &runs{f: f, joined: make(chan string, 10), log: filepath.Join(filepath.Dir(f.dir), name+".log")}
	w.cmd = exec.Command(f.program, append([]string{"worker", "--project", ".", "--slots", "2", "--name", name}, more...)...)
	w.cmd.Dir, w.cmd.Env = f.dir, slices.Concat(f.env, machine)
	log, err := os.Create(w.log)
	f.noError(err)
	f.Cleanup(func() { _ = log.Close() })
	w.cmd.Stderr = log
	out, err := w.cmd.StdoutPipe()
	f.noError(err)
	f.noError(w.cmd.Start())
	f.Cleanup(func() { _ = w.cmd.Process.Kill() })
	go func() {
		defer close(w.joined)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.joined <- lines.Text()
		}
	}()
	w.wantJoined()
	return w
}

func (w *runs) said() string {
	text, err := os.ReadFile(w.log)
	w.f.noError(err)
	return string(text)
}

// wantJoined waits until the worker has a lease, another than before.
func (w *runs) wantJoined() {
	w.f.Helper()
	select {
	case line, alive := <-w.joined:
		if !alive || !strings.Contains(line, "2 slots") {
			w.f.Fatalf("the worker says %q, and\n%s", line, w.said())
		}
	case <-w.f.Context().Done():
	}
}

func (w *runs) signal(s syscall.Signal) {
	w.f.Helper()
	w.f.noError(w.cmd.Process.Signal(s))
}

// wantLeft waits until the worker has ended.
func (w *runs) wantLeft() {
	w.f.Helper()
	for line := range w.joined {
		w.f.Errorf("at its end it says %s", line)
	}
	if err := w.cmd.Wait(); err != nil {
		w.f.Errorf("it ends with %v and\n%s", err, w.said())
	}
}

// row reads one value of the server.
func (f *fleetPlace) row(query string, into any) {
	f.Helper()
	f.noError(f.rows.QueryRow(f.Context(), query).Scan(into))
}

// expire lets the lease of a worker run out now, by the clock of the server.
func (f *fleetPlace) expire(name string) {
	f.Helper()
	done, err := f.rows.Exec(f.Context(), `UPDATE rye.workers SET lease_until = clock_timestamp() WHERE name = $1`, name)
	if f.noError(err); done.RowsAffected() != 1 {
		f.Fatalf("there is no worker %s", name)
	}
}

// running starts a thread that stays in its first call of the model, and returns it with its
// process.
func (f *fleetPlace) running(directive, worker string) (id thread.ID, pid int) {
	f.Helper()
	calls, _ := f.model.counts()
	started, err := start(f.host, directive)
	f.noError(err)
	f.wantCalls(calls + 1)
	if status := f.status(started.ThreadID); status.Worker != worker {
		f.Fatalf("worker %q has it, want %q: %+v", status.Worker, worker, status)
	}
	var schema string
	f.row(`SELECT schema_name FROM rye.projects`, &schema)
	f.row(`SELECT pid FROM `+schema+`.threads WHERE thread_id = '`+string(started.ThreadID)+`'`, &pid)
	return started.ThreadID, pid
}

func (f *fleetPlace) status(id thread.ID) view.Status {
	f.Helper()
	return must[view.Status](f.host, "get_status", args{"thread_id": id})
}

// wantEndAs waits for the end of a thread.
func (f *fleetPlace) wantEndAs(id thread.ID, want thread.State) view.Result {
	f.Helper()
	waited := must[view.WaitResult](f.host, "wait_threads", args{"thread_ids": []thread.ID{id}, "timeout": waitPatience.Seconds()})
	if got := waited.Results[id]; got.Status != want {
		f.Fatalf("%s is %s (%s), want %s", id, got.Status, got.Error, want)
	}
	return waited.Results[id]
}

// wantGone waits until a process has ended.
func (f *fleetPlace) wantGone(pid int) {
	f.Helper()
	f.until(func() (bool, string) { return process.Gone(pid), "the process of the thread goes on" })
}

// kept is what is known of a thread, which verifies.
func (f *fleetPlace) kept(id thread.ID) string {
	f.Helper()
	return f.ryes(nil, "threads", "show", string(id), "--json") + f.ryes(nil, "threads", "verify", string(id))
}

// TestWorkerSuspended: a worker and what it runs are suspended past the lease, and so is each
// of them alone. Another machine ends the thread, once. A process that goes on then writes nothing
// and starts nothing, and the worker joins anew and works.
func TestWorkerSuspended(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct{ worker, runner bool }{
		"both": {true, true}, "the worker": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleetPlace(t)
			first := f.work("one")
			f.host = f.serve()
			id, pid := f.running("slow", "one")
			if c.runner {
				f.suspend(pid)
			}
			f.suspend(first.cmd.Process.Pid)
			f.expire("one")
			second := f.work("two")
			f.wantEndAs(id, thread.Error)
			before := f.kept(id)

			f.model.release() // it has an answer to write
			if c.runner {
				f.noError(syscall.Kill(pid, syscall.SIGCONT))
			}
			f.wantGone(pid)
			second.signal(syscall.SIGTERM)
			second.wantLeft()
			first.signal(syscall.SIGCONT)
			first.wantJoined()
			again, err := start(f.host, "brief")
			f.noError(err)
			f.wantEndAs(again.ThreadID, thread.Completed)
			if status := f.status(again.ThreadID); status.Worker != "one" {
				t.Errorf("worker %q has run it", status.Worker)
			}
			if after := f.kept(id); after != before {
				t.Errorf("the thread that was ended is now\n%s\nit was\n%s", after, before)
			}
			if calls, _ := f.model.counts(); calls != 2 {
				t.Errorf("the model was asked %d times, want 2", calls)
			}
			first.signal(syscall.SIGTERM)
			first.wantLeft()
		})
	}
}

// TestRunnerSuspended: a thread whose process alone is suspended is its worker's for as long
// as that renews its lease, and goes on when the process does.
func TestRunnerSuspended(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	f := newFleetPlace(t)
	f.work("one")
	f.host = f.serve()
	id, pid := f.running("slow", "one")
	f.suspend(pid)
	f.model.release()
	var before, after string // two renewals later
	f.row(`SELECT lease_until::text FROM rye.workers WHERE name = 'one'`, &before)
	for range 2 {
		f.until(func() (bool, string) {
			f.row(`SELECT lease_until::text FROM rye.workers WHERE name = 'one'`, &after)
			return after != before, "the lease is not renewed"
		})
		before = after
	}
	if status := f.status(id); status.Status != thread.Running {
		t.Fatalf("the thread is %s", status.Status)
	}
	f.noError(syscall.Kill(pid, syscall.SIGCONT))
	f.wantEndAs(id, thread.Completed)
}

// TestWorkerCutOff: a worker that does not reach its server any more kills what it runs, a
// process that heeds no signal too, before others take that for dead; when the server is
// there again it joins anew, ends the thread and works.
func TestWorkerCutOff(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	f := newFleetPlace(t)
	link, through := pgtest.NewLink(t, f.url)
	w := f.workOn("one", append(f.machine("one"), storeurl.Variable+"="+through))
	f.host = f.serve()
	id, pid := f.running("slow", "one")
	f.suspend(pid) // it would not end by SIGTERM
	link.Cut()
	f.wantGone(pid)
	if alive := f.aliveWorkers(); alive != 1 {
		t.Errorf("when its thread was killed %d leases go on, want its own", alive)
	}
	link.Mend()
	w.wantJoined()
	f.wantEndAs(id, thread.Error)
	f.kept(id)
	f.model.release()
	again, err := start(f.host, "brief")
	f.noError(err)
	f.wantEndAs(again.ThreadID, thread.Completed)
	if calls, _ := f.model.counts(); calls != 2 {
		t.Errorf("the model was asked %d times, want 2", calls)
	}
}

// aliveWorkers is how many workers others take for alive.
func (f *fleetPlace) aliveWorkers() (n int) {
	f.Helper()
	f.row(`SELECT count(*) FROM rye.workers WHERE slots > 0 AND lease_until > clock_timestamp()`, &n)
	return n
}

// TestWorkerToldTwice: the first SIGTERM lets a worker finish what it runs, and the second
// ends that, too: the thread says how it has ended.
func TestWorkerToldTwice(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	f := newFleetPlace(t)
	first := f.workOn("one", append(f.machine("one"), signalVariable+"=1ms"))
	f.host = f.serve()
	id, pid := f.running("slow", "one")
	first.signal(syscall.SIGTERM)
	f.until(func() (bool, string) {
		told := f.ryes(nil, "workers", "list")
		return strings.Contains(told, "draining"), "it does not drain: " + told
	})
	second := f.work("two")
	brief, err := start(f.host, "brief")
	f.noError(err)
	f.wantEndAs(brief.ThreadID, thread.Completed)
	if status := f.status(brief.ThreadID); status.Worker != "two" {
		t.Errorf("%q has run what came after the first had been told to end", status.Worker)
	}
	if status := f.status(id); status.Status != thread.Running || process.Gone(pid) {
		t.Fatalf("what it ran is %s", status.Status)
	}
	first.signal(syscall.SIGTERM)
	first.wantLeft()
	if !process.Gone(pid) {
		t.Error("it has left, and its thread runs")
	}
	if ended := f.wantEndAs(id, thread.Error); ended.Error == "" {
		t.Errorf("the thread does not say why it has ended: %+v", ended)
	}
	f.kept(id)
	if told := f.ryes(nil, "workers", "list"); !strings.Contains(told, "gone") {
		t.Errorf("workers list says\n%s", told)
	}
	second.signal(syscall.SIGTERM)
	second.wantLeft()
}

// TestWorkerToldAtOnce: several signals right behind each other, as timeout sends them, are
// one: the worker finishes what it runs.
func TestWorkerToldAtOnce(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	f := newFleetPlace(t)
	worker := f.workOn("one", append(f.machine("one"), signalVariable+"=1h"))
	f.host = f.serve()
	id, _ := f.running("slow", "one")
	for range 3 {
		worker.signal(syscall.SIGTERM)
		worker.signal(syscall.SIGINT)
	}
	f.until(func() (bool, string) {
		told := f.ryes(nil, "workers", "list")
		return strings.Contains(told, "draining"), "it does not drain: " + told
	})
	f.model.release()
	f.wantEndAs(id, thread.Completed)
	worker.wantLeft()
}

// TestWorkerWithoutKey: a thread is left to the worker that has the key of its provider.
// While none has, its status says so; a worker that cannot take it does not wait for it.
func TestWorkerWithoutKey(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	f := newFleetPlace(t)
	without := append(f.machine("poor"), "ANTHROPIC_API_KEY=")
	poor := f.workOn("poor", without)
	f.host = f.serve()
	brief, err := start(f.host, "brief")
	f.noError(err)
	if status := f.status(brief.ThreadID); !status.Queued || !strings.Contains(status.NoWorker, "can use model provider anthropic (poor)") {
		t.Errorf("the thread that nobody takes: %+v", status)
	}
	f.workOn("brief visitor", without, "--leave-when-idle").wantLeft()
	f.work("rich")
	f.wantEndAs(brief.ThreadID, thread.Completed)
	if status := f.status(brief.ThreadID); status.Worker != "rich" {
		t.Errorf("worker %q has run it", status.Worker)
	}
	poor.signal(syscall.SIGTERM)
	poor.wantLeft()
}

// TestWorkerClocks: the clocks of the machines are days apart. The clock of the server
// decides what runs and how long it is kept: nobody takes a thread for dead or old.
func TestWorkerClocks(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	f := newFleetPlace(t)
	ahead := f.workOn("ahead", append(f.machine("ahead"), clockVariable+"=+75h"))
	f.host = f.serve(clockVariable + "=-75h")
	id, pid := f.running("slow", "ahead")
	behind := f.workOn("behind", append(f.machine("behind"), clockVariable+"=-50h"))
	far := f.workOn("far", append(f.machine("far"), clockVariable+"=+3000h")) // each settles what is dead when it comes
	if status := f.status(id); status.Status != thread.Running || process.Gone(pid) {
		t.Fatalf("the thread is %s", status.Status)
	}
	f.model.release()
	f.wantEndAs(id, thread.Completed)
	f.kept(id)
	status := f.status(id)
	for _, at := range []time.Time{status.CreatedAt, status.UpdatedAt} {
		if off := time.Since(at).Abs(); off > time.Hour {
			t.Errorf("what happened now is dated %s", at)
		}
	}
	for _, w := range []*runs{ahead, behind, far} {
		w.signal(syscall.SIGTERM)
		w.wantLeft()
	}
}

// TestWorkerNewer: a worker of a newer version, which changes the tables of the project or of
// the fleet, joins while an older one runs a thread. That ends well; the older one takes nothing
// more, whose processes would refuse the tables, and leaves with an error that says so. The newer
// one takes what is started from then on, by a server of the older version too.
func TestWorkerNewer(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, folder := range []string{"migrations", "migrations/fleet"} {
		t.Run(path.Base(folder), func(t *testing.T) {
			t.Parallel()
			f := newFleetPlace(t)
			older := f.work("older")
			f.host = f.serve()
			id, _ := f.running("slow", "older")
			ours, err := filepath.Abs(filepath.Join("..", "..", "runtime", "store", "postgres"))
			f.noError(err)
			newer := append(f.machine("newer"), newerVariable+"="+filepath.Join(ours, folder))
			younger := f.workOn("newer", newer)
			f.until(func() (bool, string) {
				return strings.Contains(older.said(), "takes nothing more"), "the worker does not see it: " + older.said()
			})
			for range 3 { // more than the newer one takes at once
				brief, err := start(f.host, "brief")
				f.noError(err)
				f.wantEndAs(brief.ThreadID, thread.Completed)
				if status := f.status(brief.ThreadID); status.Worker != "newer" {
					t.Errorf("%q has run what was started since", status.Worker)
				}
			}
			f.model.release()
			f.wantEndAs(id, thread.Completed)
			for range older.joined { // until it has ended
			}
			const told = "written by a newer rye-mcp"
			if err := older.cmd.Wait(); err == nil || !strings.Contains(older.said(), told) {
				t.Errorf("it ends with %v and\n%s", err, older.said())
			}
			if out, err := f.rye(f.machine("late"), "worker", "--project", ".", "--name", "late"); err == nil || !strings.Contains(out, told) {
				t.Errorf("an older one that comes later says %v and\n%s", err, out)
			}
			f.ryes(newer, "threads", "verify", "--all")
			younger.signal(syscall.SIGTERM)
			younger.wantLeft()
		})
	}
}
