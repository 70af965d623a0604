// Package threads is what every room of the orchestrator needs to know of the threads
// of a project: how one stands, who is below whom, which continue which, and where
// their files lie. The rooms that plan, start, stop and show threads are built on it,
// and it knows none of them.
//
// Nothing here remembers a thread: every answer is read from the stored row, after a
// look whether the thread's process still lives.
package threads

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/orchestrator/recovery"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/runtime/workspace"
)

// Deps is what Threads works with; all of it belongs to one project.
type Deps struct {
	Project string // absolute path of the project
	Store   store.Store
	Life    life.Life // who lives, and how that is ended
	// Fleet are the workers that share the store; nil: there are none.
	Fleet Fleet
	// Records are what the threads leave beside their rows.
	Records records.Records
	// Workspaces are those of the threads; nil: there are none.
	Workspaces workspace.Workspaces
	// Snapshots are those of the items that threads work by; nil: there are none.
	Snapshots *snapshot.Keeper
	// Parent is the thread that this process runs in (RYE_PARENT_THREAD_ID), or
	// empty. It becomes the parent of what is started without another one.
	Parent thread.ID
	Now    func() time.Time
	Log    zerolog.Logger
	// Crashpoints is told of each crash point of a start, of a stop, and of the end that
	// this process gives a dead thread.
	Crashpoints thread.Crashpoints
	// StopBelow stops what runs below a thread that died, by the project's policy, and
	// returns what it stopped.
	StopBelow func(context.Context, thread.ID) ([]thread.ID, error)
	// Freed is told that a thread has ended badly whose process was started here: its
	// slot is free.
	Freed func(context.Context)
}

// Threads are the threads of a project.
type Threads struct {
	Deps
	Finisher *finish.Finisher
	Sweeper  *recovery.Sweeper
	// NewRun makes the run of a thread that this process starts or settles, see [Fleet.NewRun].
	NewRun func() (run thread.Run, done func())

	children  *children
	described fileCache[Described]
	lastWords fileCache[transcript.Newest]
	lacking   lacking
}

// New returns the threads of a project.
func New(d Deps) *Threads {
	t := &Threads{Deps: d, NewRun: func() (thread.Run, func()) { return thread.NewRun(), func() {} }}
	if d.Fleet != nil {
		t.NewRun = d.Fleet.NewRun
	}
	t.children = newChildren(func(ctx context.Context, id thread.ID) {
		t.settleDead(ctx, id)
		t.Freed(ctx)
	})
	t.Finisher = &finish.Finisher{
		Store: d.Store, Records: d.Records, KnowledgeDir: finish.KnowledgeDir(d.Project), Now: d.Now,
		Crashpoints: d.Crashpoints,
	}
	t.Sweeper = &recovery.Sweeper{
		Finisher: t.Finisher, Log: d.Log, StopChildren: d.StopBelow, ExitOf: t.children.exitOf,
		Life: d.Life, NewRun: t.NewRun, Crashpoints: d.Crashpoints, Workspaces: d.Workspaces,
	}
	return t
}

// Close lets go of what is watched, and closes the store. Threads go on.
func (t *Threads) Close() error {
	t.LeaveChildren()
	return t.Store.Close()
}

// LeaveChildren looks no longer after the processes that were started here.
func (t *Threads) LeaveChildren() { t.children.close() }

// WatchChild looks after a process of a thread that this one has started: should it
// end badly, the thread is settled although nobody waits for it.
func (t *Threads) WatchChild(id thread.ID, started life.Running) { t.children.watch(id, started) }

// EndedFor notes why the process of a thread, which this one has started, is about to be ended:
// whoever settles the thread here is told.
func (t *Threads) EndedFor(id thread.ID, why string) { t.children.endedFor(id, why) }

// Children are the threads whose processes were started here and have not ended.
func (t *Threads) Children() []thread.ID { return t.children.ids() }

// Sweep settles every thread whose process is gone.
func (t *Threads) Sweep(ctx context.Context) (*recovery.Report, error) {
	return t.Sweeper.RunOnce(ctx)
}

// Transcript is the transcript of a thread.
func (t *Threads) Transcript(id thread.ID) records.Transcript { return t.Records.Of(id).Transcript() }

// Messages rebuilds the conversation of a thread.
func (t *Threads) Messages(id thread.ID) ([]llm.Message, error) {
	of := t.Records.Of(id)
	return transcript.Messages(of.Transcript(), of.Artifacts())
}

// Getter reads rows as they are stored, for [lineage].
func (t *Threads) Getter(ctx context.Context) lineage.Get {
	return func(id thread.ID) (thread.Record, error) { return t.Store.Get(ctx, id) }
}
