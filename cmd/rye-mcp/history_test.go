package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/cli"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Every process of a test writes down what it claims and writes when these are set. They
// begin with RYE_, so threads have what their worker has.
const (
	// historyVariable names a folder, in which each process has a file of its own.
	historyVariable = "RYE_TEST_HISTORY"
	// unfencedVariable takes the fence away: each writer names the run that stands there.
	unfencedVariable = "RYE_TEST_UNFENCED"
)

// deed is a claim of a thread or a write by one of its runs, as the process saw it that did it.
type deed struct {
	Thread   thread.ID
	What     string     // one of the constants, or the method of the runner
	From, By thread.Run // From is that of a replacement alone
	Call     int64      // Unix nanoseconds, as Return
	Return   int64      // of one that was never answered: the largest
	Result   string
}

// Claims are deeds that change who has a thread; any other is a write.
const (
	registered = "register"
	admitted   = "admit"
	replaced   = "replace"
	returned   = "Return" // to the queue
)

// The results of deeds.
const (
	done    = "done"
	fenced  = "fenced"  // refused, as another run has the thread
	denied  = "denied"  // by the state of the thread
	unknown = "unknown" // it may have been done
)

// resultOf is the result of a deed that returned an error.
func resultOf(err error) string {
	var short *store.InsufficientError
	switch {
	case err == nil:
		return done
	case errors.Is(err, store.ErrFenced):
		return fenced
	case errors.Is(err, thread.ErrSettled), errors.Is(err, store.ErrNoBudget), errors.Is(err, thread.ErrNotFound), errors.As(err, &short):
		return denied
	}
	return unknown
}

// recorder writes down the deeds of this process: each when it is begun, so that one that
// is never answered is known, and again when it has ended.
type recorder struct {
	dir string

	mu   sync.Mutex
	next int
	file *os.File
}

// entry is a line of the file.
type entry struct {
	N int
	deed
}

// withHistory is the system with its deeds written down as the environment says.
func withHistory(sys cli.System) cli.System {
	dir, unfenced := sys.Getenv(historyVariable), sys.Getenv(unfencedVariable) != ""
	if dir == "" {
		return sys
	}
	r := &recorder{dir: dir}
	sys.Around = func(st store.Store) store.Store {
		file, err := os.CreateTemp(dir, "deeds-*.jsonl")
		if err != nil {
			panic(err) // deeds that are not seen would be missed by nobody
		}
		r.file = file
		return &seenStore{Store: st, by: r, unfenced: unfenced}
	}
	return sys
}

func (r *recorder) write(e entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := json.NewEncoder(r.file).Encode(e); err != nil {
		panic(err)
	}
}

// do does a deed. The return of f decides its result; one not done at all is refused.
func (r *recorder) do(d deed, f func() (did bool, err error)) {
	r.mu.Lock()
	r.next++
	n := r.next
	r.mu.Unlock()
	d.Call, d.Return, d.Result = time.Now().UnixNano(), math.MaxInt64, unknown
	r.write(entry{n, d})
	did, err := f()
	switch d.Result = resultOf(err); {
	case err == nil && !did:
		d.Result = denied
	case d.What == replaced && d.Result == fenced: // before it, or between its registry and its ledger
		d.Result = unknown
	case d.What == admitted && d.Result == fenced: // after its registry
		d.Result = done
	}
	if d.Result != unknown { // one that may yet be done has no end
		d.Return = time.Now().UnixNano()
	}
	r.write(entry{n, d})
}

// history are the deeds in a folder, by thread.
func history(t testing.TB, dir string) map[thread.ID][]deed {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "deeds-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nobody has written down what he did: %v", err)
	}
	of := map[thread.ID][]deed{}
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		last := map[int]deed{}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var e entry
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				continue // cut off by a kill
			}
			last[e.N] = e.deed
		}
		_ = file.Close()
		for _, d := range last {
			of[d.Thread] = append(of[d.Thread], d)
		}
	}
	return of
}

// holder is who has a thread: the run, and whether it came by the queue and has its slot.
type holder struct {
	run  thread.Run
	slot bool
}

// oneHolder is what deeds with a thread must look like: one run has it at a time, by the
// queue once unless it was put back there, and only that run writes.
var oneHolder = porcupine.Model{
	Init: func() any { return holder{} },
	Step: func(state, input, _ any) (bool, any) {
		now, d := state.(holder), input.(deed)
		if d.Result == unknown {
			return true, now.after(d)
		}
		own := now.run == d.By || now.run == ""
		switch {
		case d.Result == denied:
			return true, now
		case d.What == registered:
			return now.run == "", now.after(d)
		case d.What == admitted:
			return !now.slot, now.after(d)
		case d.What == replaced:
			return now.run == d.From, now.after(d)
		}
		return own == (d.Result == done), now.after(d)
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// after is who has the thread after a deed that was done, or changes nothing.
func (h holder) after(d deed) holder {
	switch {
	case d.Result == fenced:
	case d.What == registered && h.run == "":
		h.run = d.By
	case d.What == admitted && !h.slot:
		h = holder{d.By, true}
	case d.What == replaced && h.run == d.From:
		h.run = d.By
	case d.What == returned && h.run == d.By:
		h.slot = false
	}
	return h
}

// violations are the threads whose deeds cannot have been done one after the other by one
// holder at a time.
func violations(of map[thread.ID][]deed) []thread.ID {
	var broken []thread.ID
	for id, deeds := range of {
		operations := make([]porcupine.Operation, len(deeds))
		for i, d := range deeds {
			operations[i] = porcupine.Operation{ClientId: i, Input: d, Call: d.Call, Return: d.Return}
		}
		if !porcupine.CheckOperations(oneHolder, operations) {
			broken = append(broken, id)
		}
	}
	return broken
}

// seenStore is a store whose claims and writes are written down.
type seenStore struct {
	store.Store

	by       *recorder
	unfenced bool
}

// Register implements [store.Store].
func (s *seenStore) Register(ctx context.Context, n store.NewThread) (rec thread.Record, created bool, err error) {
	s.by.do(deed{Thread: n.ID, What: registered, By: n.Run}, func() (bool, error) {
		rec, created, err = s.Store.Register(ctx, n)
		return created, err
	})
	return rec, created, err
}

// Admit implements [store.Store].
func (s *seenStore) Admit(ctx context.Context, id thread.ID, slots int, at time.Time, run thread.Run) (rec thread.Record, did bool, err error) {
	s.by.do(deed{Thread: id, What: admitted, By: run}, func() (bool, error) {
		rec, did, err = s.Store.Admit(ctx, id, slots, at, run)
		return did, err
	})
	return rec, did, err
}

// Replace implements [store.Store].
func (s *seenStore) Replace(ctx context.Context, id thread.ID, from, to thread.Run) (rec thread.Record, err error) {
	s.by.do(deed{Thread: id, What: replaced, From: from, By: to}, func() (bool, error) {
		rec, err = s.Store.Replace(ctx, id, from, to)
		return true, err
	})
	if err == nil {
		s.by.pause(ctx, rec)
	}
	return rec, err
}

// pausedFor names the file that says that whoever has replaced the run of a thread of a
// directive does nothing more, until it is gone: in that time alone a late write would count
// that nothing but the fence refuses.
func pausedFor(dir, directive string) string { return filepath.Join(dir, "pause-"+directive) }

// pausing is added to that name when somebody does nothing more.
const pausing = "-now"

func (r *recorder) pause(ctx context.Context, rec thread.Record) {
	file := pausedFor(r.dir, rec.Directive)
	if _, err := os.Stat(file); err == nil {
		_ = os.WriteFile(file+pausing, nil, 0o600)
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		if _, err := os.Stat(file); err != nil {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// Runner implements [store.Store].
func (s *seenStore) Runner(id thread.ID, run thread.Run) store.Runner {
	return &seenRunner{Runner: s.Store.Runner(id, run), in: s, id: id, run: run}
}

// seenRunner is a runner whose writes are written down.
type seenRunner struct {
	store.Runner

	in  *seenStore
	id  thread.ID
	run thread.Run
}

// write does a write, as whoever has the thread when there is no fence.
func (r *seenRunner) write(ctx context.Context, what string, f func(store.Runner) error) (err error) {
	r.in.by.do(deed{Thread: r.id, What: what, By: r.run}, func() (bool, error) {
		if !r.in.unfenced {
			err = f(r.Runner)
			return true, err
		}
		for err = store.ErrFenced; errors.Is(err, store.ErrFenced); { // another has it since it was asked who has
			var now thread.Record
			if now, err = r.in.Get(ctx, r.id); err == nil {
				err = f(r.in.Store.Runner(r.id, now.Run))
			}
		}
		return true, err
	})
	return err
}

// Apply implements [store.Runner].
func (r *seenRunner) Apply(ctx context.Context, c store.Change) (rec thread.Record, err error) {
	err = r.write(ctx, "Apply "+string(c.To()), func(as store.Runner) (err error) { rec, err = as.Apply(ctx, c); return err })
	return rec, err
}

// Return implements [store.Runner].
func (r *seenRunner) Return(ctx context.Context) (rec thread.Record, err error) {
	err = r.write(ctx, returned, func(as store.Runner) (err error) { rec, err = as.Return(ctx); return err })
	return rec, err
}

// SetProcess implements [store.Runner].
func (r *seenRunner) SetProcess(ctx context.Context, p thread.Process) error {
	return r.write(ctx, "SetProcess", func(as store.Runner) error { return as.SetProcess(ctx, p) })
}

// Yield implements [store.Runner].
func (r *seenRunner) Yield(ctx context.Context, yielded bool) error {
	return r.write(ctx, "Yield", func(as store.Runner) error { return as.Yield(ctx, yielded) })
}

// RecordCost implements [store.Runner].
func (r *seenRunner) RecordCost(ctx context.Context, c thread.Cost, contextTokens int64) error {
	return r.write(ctx, "RecordCost", func(as store.Runner) error { return as.RecordCost(ctx, c, contextTokens) })
}

// Pledge implements [store.Runner].
func (r *seenRunner) Pledge(ctx context.Context, amount thread.Micros, at time.Time) error {
	return r.write(ctx, "Pledge", func(as store.Runner) error { return as.Pledge(ctx, amount, at) })
}

// Report implements [store.Runner].
func (r *seenRunner) Report(ctx context.Context, ownTotal thread.Micros, at time.Time) error {
	return r.write(ctx, "Report", func(as store.Runner) error { return as.Report(ctx, ownTotal, at) })
}
