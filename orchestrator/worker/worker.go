package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Project is one whose threads a worker runs.
type Project struct {
	Name    string // in the store
	Threads *threads.Threads
	Queue   *scheduler.Scheduler
	Stop    *stop.Stopper
	Tidy    *tidy.Tidier
	Schema  string // of its tables
	// Fits returns an error that wraps [store.ErrTooNew] once a newer binary has changed the
	// tables of the project; nil: none does.
	Fits func(context.Context) error
	// Held are the threads that live by a lease.
	Held func(context.Context, thread.Incarnation) ([]fleet.Thread, error)
	// AskAgain forgets what was answered about leases a moment ago; nil: nothing is remembered.
	AskAgain func()
	// Has names what of the project's settings the user has accepted, and returns the providers
	// that can be used for it now; nil: that of Self holds for good.
	Has func(context.Context) (accepted string, able []string)

	mu   sync.Mutex
	seen []thread.ID // that lived by the lease at the last look
}

// Worker runs threads of projects by one lease. Fleet, Self and Kill are given before any
// project asks it, Projects before Run.
type Worker struct {
	Fleet *fleet.Fleet
	Self  fleet.Worker
	// Kill ends every process that runs by the lease of an incarnation on this machine, and
	// what those have started.
	Kill func(context.Context, thread.Incarnation) error
	Log  zerolog.Logger
	// Deliver begins to take hints and periodic work, and returns what ends that; nil: commits
	// alone wake the worker.
	Deliver func(context.Context, *Worker) (stop func(context.Context) error, err error)
	// Space says why nothing more can be written on this machine; it may be nil.
	Space func() error
	// Joined is told of each lease that the worker gets; it may be nil.
	Joined   func(*fleet.Lease)
	Projects []*Project

	admitting sync.Mutex // a look at the slots and the admission after it
	saying    sync.Mutex // what the checkouts lack, one after the other

	mu       sync.Mutex
	lease    *fleet.Lease
	draining bool
	outdated error // why this binary is too old for the projects
	offer    fleet.Offer
	full     bool     // no space was left at the last look
	lacks    []string // commits, as the lease says
}

// current is the lease, nil before there is one.
func (w *Worker) current() (lease *fleet.Lease, draining bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lease, w.draining
}

// Own is the incarnation of the worker.
func (w *Worker) Own() thread.Incarnation {
	if lease, _ := w.current(); lease != nil {
		return lease.Incarnation
	}
	return ""
}

// NewRun implements [threads.Fleet].
func (w *Worker) NewRun() (run thread.Run, done func()) { return w.Own().NewRun(), func() {} }

// Room implements [threads.Fleet]. The slots are counted in the rows: a thread that hands
// over, or only waits, is counted as the queue counts it.
func (w *Worker) Room(ctx context.Context) (done func(), ok bool) {
	w.admitting.Lock()
	lease, draining := w.current()
	ok = lease != nil && !draining && lease.Holds() && w.hasSpace() && w.knows(ctx)
	if ok {
		occupied, _, err := w.load(ctx, lease.Incarnation)
		if ok = err == nil && occupied < w.Self.Slots; err != nil {
			w.Log.Warn().Err(err).Msg("cannot count the threads of this worker")
		}
	}
	if !ok {
		w.admitting.Unlock()
		return nil, false
	}
	return w.admitting.Unlock, true
}

// hasSpace reports whether there is room for what threads write. Without it each thread that
// the worker takes would fail at once, and none be left for the others.
func (w *Worker) hasSpace() bool {
	if w.Space == nil {
		return true
	}
	err := w.Space()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && !w.full {
		w.Log.Warn().Err(err).Msg("nothing more is taken until there is room")
	}
	w.full = err != nil
	return !w.full
}

// knows reports whether the tables of all projects are such as this binary knows. Where a
// newer one has changed them the worker takes nothing more: each process that it starts would
// refuse them.
func (w *Worker) knows(ctx context.Context) bool {
	for _, p := range w.Projects {
		if p.Fits == nil {
			continue
		}
		err := p.Fits(ctx)
		if err == nil {
			continue
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if errors.Is(err, store.ErrTooNew) {
			w.outdated = err
		}
		return false
	}
	return true
}

// tooOld is why the worker takes nothing more, if it is too old.
func (w *Worker) tooOld() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outdated
}

// Providers implements [threads.Fleet]: the worker plans its threads with the settings that
// it can use itself.
func (w *Worker) Providers(context.Context) (able []string, served bool) { return nil, false }

// NoWorker implements [threads.Fleet].
func (w *Worker) NoWorker(context.Context, thread.Record) string { return "" }

// maxLacks bounds the commits that a worker says it lacks: the last ones.
const maxLacks = 100

// Lacks implements [threads.Fleet]. Commits that could not be said are said with the next look.
func (w *Worker) Lacks(ctx context.Context, commits []string, lacking string) {
	w.saying.Lock()
	defer w.saying.Unlock()
	lease, _ := w.current()
	if lease == nil {
		return
	}
	w.mu.Lock()
	said := w.lacks
	w.mu.Unlock()
	now := slices.DeleteFunc(slices.Clone(said), func(id string) bool { return id != lacking && slices.Contains(commits, id) })
	if lacking != "" && !slices.Contains(now, lacking) {
		now = append(now[max(0, len(now)+1-maxLacks):], lacking)
	}
	if slices.Equal(now, said) {
		return
	}
	if err := lease.Lacks(ctx, now); err != nil {
		w.Log.Warn().Err(err).Msg("cannot say what the checkouts lack")
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lease == lease { // another one says nothing yet
		w.lacks = now
	}
}

// load is how many slots the worker has in use, and how many threads.
func (w *Worker) load(ctx context.Context, own thread.Incarnation) (slots, all int, err error) {
	for _, p := range w.Projects {
		held, err := p.Held(ctx, own)
		if err != nil {
			return 0, 0, err
		}
		all += len(held)
		for _, t := range held {
			if t.Slot {
				slots++
			}
		}
	}
	return slots, all, nil
}

// Ends say how a worker comes to its end.
type Ends struct {
	// Drain is closed when the worker shall take nothing new, and leave when what it runs has
	// ended.
	Drain <-chan struct{}
	// WhenIdle lets the worker leave as soon as it runs nothing, nothing is queued that it
	// takes, and nothing is to be tried again later that it takes and leaves to no other.
	WhenIdle bool
}

// Run works until it has drained, or ctx ends: threads that still run are killed then, and settled.
// A lease that is lost is replaced by another, after all that ran by it was killed; a worker
// that drains has nothing more to do then, and returns [fleet.ErrLost].
func (w *Worker) Run(ctx context.Context, ends Ends) error {
	self := w.Self
	for first := true; ; first = false {
		lease, err := w.join(ctx, self, first, ends.Drain)
		if err != nil {
			return err
		}
		err = w.stay(ctx, lease, ends)
		if _, draining := w.current(); draining || !errors.Is(err, fleet.ErrLost) {
			return errors.Join(w.tooOld(), err)
		}
		self.Former = lease.Incarnation
		w.Log.Error().Str("worker", self.Name).Msg("the lease was lost; what ran by it was killed, and the worker joins anew")
	}
}

// join takes a lease. The first failure is told; after a lease was lost it is tried until ctx
// ends, or the worker is to drain.
func (w *Worker) join(ctx context.Context, self fleet.Worker, first bool, drain <-chan struct{}) (*fleet.Lease, error) {
	again := time.NewTicker(w.Fleet.Renewal())
	defer again.Stop()
	for {
		self.Offer = w.has(ctx)
		lease, err := w.Fleet.Join(ctx, self)
		if err == nil {
			w.mu.Lock()
			w.lease, w.offer, w.lacks = lease, self.Offer, nil
			w.mu.Unlock()
			if w.Joined != nil {
				w.Joined(lease)
			}
			return lease, nil
		}
		if first {
			return nil, err
		}
		w.Log.Warn().Err(err).Msg("cannot join the fleet")
		select {
		case <-again.C:
		case <-drain:
			return nil, fleet.ErrLost
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// stay works as long as a lease lasts. The queue may begin a thread while the worker finds that
// it has nothing more to do: once nothing can start any more, that is looked at again.
func (w *Worker) stay(ctx context.Context, lease *fleet.Lease, ends Ends) error {
	var kept sync.WaitGroup
	keeping, release := context.WithCancel(context.WithoutCancel(ctx)) // to the very end
	defer kept.Wait()
	defer release()
	kept.Go(func() { _ = lease.Keep(keeping) }) // Lost tells
	killed, err := w.work(ctx, lease, ends)
	for !killed && w.runsAny(ctx, lease) {
		killed, err = w.work(ctx, lease, ends)
	}
	if err != nil {
		return err
	}
	if killed {
		w.sweep(context.WithoutCancel(ctx))
	}
	release()
	kept.Wait()
	return lease.Leave(context.WithoutCancel(ctx))
}

// runsAny reports whether threads run by a lease, or that cannot be told.
func (w *Worker) runsAny(ctx context.Context, lease *fleet.Lease) bool {
	_, all, err := w.load(ctx, lease.Incarnation)
	return all > 0 || err != nil
}

// work lets the jobs of a worker run until it has nothing more to do. It kills what must not go
// on before anything that may wait for the server, and again when nothing can start any more.
func (w *Worker) work(ctx context.Context, lease *fleet.Lease, ends Ends) (killed bool, err error) {
	working, stop := context.WithCancel(ctx)
	var jobs sync.WaitGroup
	jobs.Go(func() { w.watchLeases(working, lease) })
	jobs.Go(func() { w.keepOffer(working, lease) })
	for _, p := range w.Projects {
		jobs.Go(func() { p.Queue.Run(working) })
		jobs.Go(func() { w.heed(working, p, lease) })
		jobs.Go(func() { p.Tidy.RunHere(working) })
	}
	delivered := w.deliver(ctx)
	err = w.untilOver(ctx, lease, ends)
	stop()
	killed = ctx.Err() != nil || err != nil
	why := "its worker was ended"
	if errors.Is(err, fleet.ErrLost) {
		why = "its worker had lost its lease"
	}
	if killed {
		w.kill(ctx, lease, why)
	}
	delivered(ctx)
	jobs.Wait()
	if killed {
		w.kill(ctx, lease, why)
	}
	return killed, err
}

// deliver begins to take hints and periodic work. Without them the worker goes by commits,
// and by its own looks.
func (w *Worker) deliver(ctx context.Context) (end func(context.Context)) {
	if w.Deliver == nil {
		return func(context.Context) {}
	}
	stop, err := w.Deliver(ctx, w)
	if err != nil {
		w.Log.Error().Err(err).Msg("no hints are delivered to this worker; commits wake it")
		return func(context.Context) {}
	}
	return func(ctx context.Context) {
		if err := stop(context.WithoutCancel(ctx)); err != nil {
			w.Log.Warn().Err(err).Msg("end the delivery of hints")
		}
	}
}

// killWithin bounds the killing of what ran by a lease: the third of it that is left.
const killWithin = fleet.TTL / 3

func (w *Worker) kill(ctx context.Context, lease *fleet.Lease, why string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), killWithin)
	defer stop()
	var killing sync.WaitGroup
	for _, p := range w.Projects {
		for _, id := range p.known() {
			killing.Go(func() { w.killOne(ctx, p, id, why) })
		}
	}
	killing.Wait()
	if err := w.Kill(ctx, lease.Incarnation); err != nil { // what has come since, and what threads have started
		w.Log.Error().Err(err).Msg("could not kill all that ran by the lease")
	}
}

// killOne kills the process of a thread, which is found without the store: that may be what
// cannot be reached. A thread's process can hide its environment, so that Kill does not find
// it.
func (w *Worker) killOne(ctx context.Context, p *Project, id thread.ID, why string) {
	rec := thread.Record{ThreadID: id, Status: thread.Running}
	if rec.Process = p.Threads.Life.Find(rec); rec.PID == 0 {
		return
	}
	p.Threads.EndedFor(id, why)
	_, err := p.Threads.Life.Stop(ctx, rec, life.Ladder{}, nil)
	if err = errors.Join(err, p.Threads.Life.Leftovers(ctx, id)); err != nil {
		w.Log.Error().Err(err).Str("thread_id", string(id)).Msg("could not kill a thread that ran by the lease")
	}
}

// idleLook is how often a worker that is to leave looks whether it may.
const idleLook = 250 * time.Millisecond

// untilOver returns when the worker has nothing more to do: nil, or fleet.ErrLost.
func (w *Worker) untilOver(ctx context.Context, lease *fleet.Lease, ends Ends) error {
	look := time.NewTicker(idleLook)
	defer look.Stop()
	drain, draining, idle := ends.Drain, false, 0
	waiting := patient{own: lease.Incarnation}
	for {
		select {
		case <-lease.Lost():
			return fleet.ErrLost
		case <-ctx.Done():
			return nil
		case <-drain:
			drain, draining = nil, true
			w.drain(ctx, lease)
		case <-look.C:
		}
		if old := w.tooOld(); old != nil && !draining {
			w.Log.Error().Err(old).Msg("a newer version has changed the thread store; this worker takes nothing more, and leaves when what it runs has ended")
			draining = true
			w.drain(ctx, lease)
		}
		if !draining && !ends.WhenIdle {
			continue
		}
		_, all, err := w.load(ctx, lease.Incarnation)
		switch {
		case err != nil:
			w.Log.Warn().Err(err).Msg("cannot count the threads of this worker")
		case all > 0 || !draining && w.wanted(ctx):
			idle = 0
		case draining:
			return nil
		default:
			if idle++; idle <= idleLooks {
				continue
			}
			if !w.awaitsRetry(ctx, &waiting) {
				return nil
			}
			idle = 0
		}
	}
}

// idleLooks is how often in a row nothing is to be seen before a worker counts as idle.
const idleLooks = 4

func (w *Worker) drain(ctx context.Context, lease *fleet.Lease) {
	w.mu.Lock()
	w.draining = true
	w.mu.Unlock()
	if err := lease.Drain(ctx); err != nil {
		w.Log.Warn().Err(err).Msg("cannot say that this worker drains")
	}
}

// wanted reports whether a thread is queued that this worker takes, or that cannot be told.
func (w *Worker) wanted(ctx context.Context) bool {
	for _, p := range w.Projects {
		if takes, err := p.Queue.Takes(ctx); err != nil || takes {
			return true
		}
	}
	return false
}
