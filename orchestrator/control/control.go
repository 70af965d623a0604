// Package control is the one API to the threads of a project. The MCP tools,
// the command line and the threads themselves all call it; none of them
// touches store, process or folder on its own. Starts, waits and answers are here; the
// rest is behind it, in rooms whose imports point one way: continuation, scheduler,
// tidy, stop, plan, verify, health, steer, view, settings, threads.
//
// Nothing here remembers a thread: every answer is read from the stored row,
// after a look whether the thread's process still lives.
package control

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/orchestrator/changes"
	"github.com/rye-mcp/rye-mcp/orchestrator/changeset"
	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/costs"
	"github.com/rye-mcp/rye-mcp/orchestrator/fanout"
	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/news"
	"github.com/rye-mcp/rye-mcp/orchestrator/plan"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/steer"
	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/orchestrator/verify"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/workspace"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/palette"
)

// Deps is what a Controller works with; all of it belongs to one project.
type Deps struct {
	Project   string // absolute path of the project
	Store     store.Store
	Resolver  *resolve.Resolver
	Config    *config.Loader
	Providers *provider.Source
	Launcher  scheduler.Launcher
	Life      life.Life // who lives, and how that is ended
	Trust     *trust.Gate
	Records   records.Records // what threads leave beside their rows
	// Workspaces are those of threads; nil: there are none.
	Workspaces workspace.Workspaces
	// Fleet are the workers that share the store; nil: there are none.
	Fleet threads.Fleet
	// Machine names this machine and its user among those that share the store.
	Machine string
	// Snapshots are those of the items that threads work by; nil: there are none.
	Snapshots *snapshot.Keeper
	// Key reads the user's item key, which signs receipts; it may be made while a
	// server runs.
	Key func() (*sign.Key, error)
	// Parent is the thread that this process runs in (RYE_PARENT_THREAD_ID), or
	// empty. It becomes the parent of what is started without another one.
	Parent thread.ID
	Env    map[string]string // values of the {env:…} placeholders
	// Palette is what the model of a thread is offered; nil: plans do not say what a
	// first request costs.
	Palette func(opening.Wanted) (palette.Palette, error)
	Now     func() time.Time
	Log     zerolog.Logger
	// Daily tells how the money of today stands, or nil where nothing bounds it; it may
	// be nil itself.
	Daily func(context.Context) (*view.DailySpend, error)
	// Forget takes knowledge entries of deleted threads out of the search index; nil where
	// there is none.
	Forget func(ctx context.Context, ids []string) error
	// Compact make what lies beside the databases as small as it can be.
	Compact []func(context.Context) (store.Vacuumed, error)
	// Crashpoints is told of each crash point of a start, of a stop, and of the end that
	// this process gives a dead thread.
	Crashpoints thread.Crashpoints
}

// Controller starts, watches and stops threads.
type Controller struct {
	Threads  *threads.Threads
	Settings *settings.Source
	View     *view.View
	Planner  *plan.Planner
	Queue    *scheduler.Scheduler
	Fanout   *fanout.Mapper
	Stop     *stop.Stopper
	Continue *continuation.Continuer
	Verify   *verify.Checker
	Health   *health.Checker
	News     *news.Desk
	Changes  *changes.Feed
	Board    *board.Keeper
	Costs    *costs.Costs
	Tidy     *tidy.Tidier
	Steer    *steer.Steerer
	Changed  *changeset.Desk

	told sync.Map // by id: questions that a waiting parent has been told of
}

// New returns the controller of a project.
func New(d Deps) *Controller {
	c := &Controller{Settings: d.settings()}
	c.Threads = threads.New(threads.Deps{
		Project: d.Project, Store: d.Store, Life: d.Life, Fleet: d.Fleet, Records: d.Records, Workspaces: d.Workspaces, Snapshots: d.Snapshots, Parent: d.Parent, Now: d.Now, Log: d.Log, Crashpoints: d.Crashpoints,
		StopBelow: func(ctx context.Context, id thread.ID) ([]thread.ID, error) { return c.Stop.Orphans(ctx, id) },
		Freed:     func(ctx context.Context) { c.Queue.DispatchAndLog(ctx, false, nil) },
	})
	c.View = &view.View{Threads: c.Threads, Daily: d.Daily}
	c.Verify = &verify.Checker{Threads: c.Threads, Settings: c.Settings, Key: d.Key}
	c.Health = &health.Checker{Threads: c.Threads, Settings: c.Settings}
	c.Changes = &changes.Feed{Threads: c.Threads}
	c.Board = board.New(board.Deps{Threads: c.Threads, Feed: c.Changes, Window: c.windowOf, Verify: c.verifies})
	c.Costs = &costs.Costs{Threads: c.Threads}
	c.Changed = &changeset.Desk{Threads: c.Threads}
	c.Planner = &plan.Planner{Project: d.Project, Threads: c.Threads, Resolver: d.Resolver, Settings: c.Settings, Env: d.Env, Palette: d.Palette}
	c.News = &news.Desk{Threads: c.Threads}
	c.Steer = &steer.Steerer{Threads: c.Threads, Settings: c.Settings}
	c.Stop = &stop.Stopper{Threads: c.Threads, Settings: c.Settings}
	c.Queue = &scheduler.Scheduler{Threads: c.Threads, View: c.View, Settings: c.Settings, Launcher: d.Launcher}
	c.Fanout = &fanout.Mapper{Project: d.Project, Threads: c.Threads, Planner: c.Planner, Queue: c.Queue}
	c.Queue.Sets = c.Fanout.Advance
	c.View.ItemsWait = c.Fanout.Waits
	c.Continue = &continuation.Continuer{
		Threads: c.Threads, Settings: c.Settings, Planner: c.Planner, Queue: c.Queue, Verify: c.Verify,
	}
	c.Queue.Retries = c.Continue.RetryDue
	c.Tidy = &tidy.Tidier{Threads: c.Threads, Settings: c.Settings, Stop: c.Stop, Forget: d.Forget, Compact: d.Compact}
	c.Health.GoOn = func(ctx context.Context) error {
		_, err := c.Tidy.Continue(ctx, nil)
		return err
	}
	for _, u := range c.Health.Upkeep() {
		c.Tidy.Jobs = append(c.Tidy.Jobs, tidy.Job{Name: u.Name, Run: u.Run})
	}
	c.Tidy.Belongings = append(c.Tidy.Belongings,
		tidy.Belonging{Name: "the workspace", Remove: c.Changed.Remove, Blocks: c.Changed.Unapplied},
		tidy.Belonging{Name: "the snapshot of its items", Remove: c.Threads.ForgetItems, Apart: true})
	c.Tidy.Jobs = append(c.Tidy.Jobs, tidy.Job{Name: "workspaces", Run: c.Changed.Sweep, Here: true}, tidy.Job{Name: "snapshots", Run: c.Threads.SweepItems})
	return c
}

func (d Deps) settings() *settings.Source {
	return &settings.Source{Config: d.Config, Providers: d.Providers, Trust: d.Trust, Log: d.Log, Machine: d.Machine}
}

// Close releases what the controller holds, its store included. Threads go on.
func (c *Controller) Close() error {
	c.Queue.Close()
	c.Board.Close()
	c.Changes.Close()
	return c.Threads.Close()
}

// windowOf is the context window of a model as the settings have it now; 0: not known.
func (c *Controller) windowOf(model string) int64 {
	choice, known, err := c.Settings.Begin().Providers.Known(model)
	if err != nil || !known {
		return 0
	}
	return int64(choice.Model.ContextWindow)
}

func (c *Controller) verifies(ctx context.Context, id thread.ID) (bool, error) {
	v, err := c.Verify.Check(ctx, []thread.ID{id})
	return v.Success, err
}
