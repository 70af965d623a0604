package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/ahead"
	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/loop"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/secret"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/threadlog"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/place"
)

// threadCommand is the hidden verb of package spawn.
const threadCommand = "thread"

// newThreadCommand is the hidden verb under which threads run.
func newThreadCommand(sys System, opts *options) *cobra.Command {
	var (
		id            string
		preRegistered bool
	)
	run := &cobra.Command{
		Use:   "run --thread-id ID --pre-registered",
		Short: "Run a registered thread in this process",
		Long: `Run a thread that a spawner has registered. The spawner hands over the lock that
the thread lives by as file descriptor 3, and its run as file descriptor 4, so
this is of no use by hand; start threads with "rye-mcp run".`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !preRegistered {
				return &usageError{message: "a thread is registered by whoever starts it", try: "rye-mcp run DIRECTIVE"}
			}
			threadID, err := thread.ParseID(id)
			if err != nil {
				return &usageError{message: err.Error(), try: "rye-mcp threads list"}
			}
			return runThread(cmd.Context(), sys, opts.project, threadID)
		},
	}
	run.Flags().StringVar(&id, "thread-id", "", "id of the thread")
	run.Flags().BoolVar(&preRegistered, "pre-registered", false, "the thread's row exists and its lock is handed over")
	parent := &cobra.Command{
		Use: threadCommand, Hidden: true, Short: "Used by rye-mcp itself", Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			return &usageError{
				message: fmt.Sprintf("unknown command %q for %q", threadCommand, "rye-mcp"),
				try:     strings.TrimSpace("rye-mcp threads " + strings.Join(args, " ")),
			}
		},
	}
	parent.AddCommand(run, newNotifyCommand(sys, opts), newTracesCommand(sys, opts), newMirrorCommand(sys, opts))
	return parent
}

// runThread is a thread's whole process: lock, wiring, loop.
func runThread(ctx context.Context, sys System, dir string, id thread.ID) error {
	defer outliveSignals()()
	in, err := inherit()
	if err != nil {
		return fmt.Errorf("%w: %w", thread.ErrRunnerExists, err)
	}
	sys = sys.handedStore(in, dir)
	sys.store.ofThread = true
	state, home, err := homeOf(ctx, sys, dir)
	if err != nil {
		return err
	}
	hold, err := (&life.Local{Home: home.Always()}).Adopt(life.Key{Thread: id, Run: in.Run})
	if err != nil {
		return fmt.Errorf("%w: %w", thread.ErrRunnerExists, err)
	}
	defer func() { _ = hold.Release() }()
	sys.Outer = in.Outer
	t := ownThread{id: id, vault: secret.New(in.Inputs)}
	t.meta, t.unreadable = records.Local{Home: home.Always()}.Of(id).Meta().Read()
	log := threadLog(sys, home.Of(id), id, t.meta.TraceID, t.vault)
	items := itemsOf(ctx, snapshot.Local{Dir: home.Snapshots, Now: sys.Now}, home.Seal, t.meta, in.Items)
	p, err := assembleAround(ctx, sys.withSecrets(in.Variables), state, log, threadStore, items)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	keepLease(ctx, p, in.Run, log)
	if err := t.begin(ctx, sys, p, in); err != nil {
		return err
	}
	defer func() { _ = t.transcript.Close() }()
	deps, err := t.loopDeps(sys, p, log) //nolint:contextcheck // a sender outlives the thread
	if err != nil {
		return err
	}
	rec, err := loop.Run(ctx, deps)
	if err != nil {
		return err
	}
	// Its slot is free. A program that has asked it to stop must not take what follows
	// for the thread.
	_ = hold.End()
	nextQueued(p, log)(context.WithoutCancel(ctx))
	if rec.Status != thread.Completed && rec.Status != thread.Continued {
		return exitError{code: exitFailure}
	}
	return nil
}

// ownThread is what a thread's process has of its thread when the loop begins.
type ownThread struct {
	id         thread.ID
	run        thread.Run
	meta       thread.Meta
	unreadable error // why meta is not known
	vault      *secret.Vault
	finisher   *finish.Finisher
	transcript *transcript.Writer
}

// begin has the process work by what the start decided, under its run, and opens the
// transcript, which the caller closes.
func (t *ownThread) begin(ctx context.Context, sys System, p *project, in spawn.Inheritance) (err error) {
	p.providers.Adopt(in.ProviderKeys)
	if t.unreadable != nil {
		in.Settings = nil // nothing vouches for them; the loop says what is wrong with the file
	}
	if p.decided, err = settingsOf(p.config, t.meta, in.Settings); err != nil {
		return err
	}
	t.finisher = threadFinisher(sys, p, t.vault)
	if t.run, err = runOf(ctx, p, t.id, in); err != nil {
		return err
	}
	t.transcript, err = t.finisher.OpenTranscript(t.id, t.run)
	return err
}

// loopDeps is what the loop of the thread works with.
func (t *ownThread) loopDeps(sys System, p *project, log zerolog.Logger) (loop.Deps, error) {
	gate := p.worksBy.over(p.trust).With(p.decided.Integrity)
	settings, err := loopSettings(p.decided, gate)
	if err != nil {
		return loop.Deps{}, err
	}
	return loop.Deps{
		ID: t.id, Project: p.path, Process: thread.Process(p.place.Self()),
		Store: p.store, Runner: p.store.Runner(t.id, t.run), Finisher: t.finisher, Transcript: t.transcript,
		Meta:     func() (thread.Meta, error) { return t.meta, t.unreadable },
		Resolver: p.worksBy.from(p.resolver).For(t.id), Trust: gate, Executor: p.executor, Actions: p.actions,
		Settings: settings, Env: p.env, Providers: p.providers.With(p.decided), Workspaces: p.workspaces,
		Sharing: p.control.Changed, Successors: p.control.Continue, StopChildren: p.control.Stop.Remains,
		GiveSlot: p.control.Queue.GiveSlot, SlotFree: nextQueued(p, log), Now: p.now, Log: log,
		Crashpoints: sys.Crashpoints, Secrets: t.vault, TurnEnded: p.mirroring.turnMirrored(t.id), Warnings: p.memory.warnings,
	}, nil
}

// keepLease has the thread of this process live on when its starter is gone. Without its store
// it can do nothing, and says so there.
func keepLease(ctx context.Context, p *project, run thread.Run, log zerolog.Logger) {
	if p.guest == nil {
		return
	}
	if err := p.guest.Inherit(ctx, run); err != nil {
		log.Warn().Err(err).Msg("this process cannot renew the lease of its thread")
	}
}

// inherit takes over what the starter of a thread hands to its process in what nobody else
// can read.
func inherit() (spawn.Inheritance, error) {
	entries, err := ahead.Inherit()
	if err != nil {
		return spawn.Inheritance{}, err
	}
	return spawn.Inherited(entries), nil
}

// runOf is the run that the process of a thread writes by. A starter of an older version
// names none, and nobody replaces that of the row while this process has the life.
func runOf(ctx context.Context, p *project, id thread.ID, in spawn.Inheritance) (thread.Run, error) {
	if in.Run != "" {
		return in.Run, nil
	}
	row, err := p.store.Get(ctx, id)
	return row.Run, err
}

// threadFinisher ends the thread of this process.
func threadFinisher(sys System, p *project, vault *secret.Vault) *finish.Finisher {
	f := &finish.Finisher{
		Store: p.store, Records: p.records(), KnowledgeDir: finish.KnowledgeDir(p.path), Now: p.now,
		Crashpoints: sys.Crashpoints,
	}
	if !vault.Empty() {
		f.Mask = vault
	}
	return f
}

// homeOf is where the threads of a project are, as its spawner has left it.
func homeOf(ctx context.Context, sys System, project string) (*projectState, folder.Home, error) {
	state, err := newState(ctx, sys, project)
	if err != nil {
		return nil, folder.Home{}, err
	}
	if state.server = sys.connections(state.site); state.server.alone && state.site.shared() {
		state.server.openEarly(ctx)
	}
	found, err := state.Find()
	if err == nil && found.Dir == "" {
		err = &place.NoPlaceError{Strangers: found.Strangers}
	}
	return state, folder.Home{Dir: found.Dir, Seal: found.Seal}, err
}

// nextQueued starts the next threads in the queue.
func nextQueued(p *project, log zerolog.Logger) func(context.Context) {
	return func(ctx context.Context) {
		if err := p.control.Queue.Dispatch(ctx); err != nil {
			log.Error().Err(err).Msg("start the next threads in the queue")
		}
	}
}

// threadLog is the log of a thread's process. Every line names the thread and
// the request it goes back to, which is in thread.json.
func threadLog(sys System, dir folder.Folder, id thread.ID, traceID string, secrets *secret.Vault) zerolog.Logger {
	with := newLog(sys, maskedLog{threadlog.Wrap(sys.Stderr, dir.Log()), secrets}).With().Str("thread_id", string(id))
	if traceID != "" {
		with = with.Str("trace_id", traceID)
	}
	return with.Logger()
}

// maskedLog writes the lines of a log without secrets.
type maskedLog struct {
	to      io.Writer
	secrets *secret.Vault
}

func (l maskedLog) Write(line []byte) (int, error) {
	if _, err := l.to.Write(l.secrets.MaskJSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// outliveSignals lets a second signal not end the process at once, as it ends
// other commands: a cancelled thread is often asked to stop by whoever cancelled
// it and by its parent, and must settle what it did in spite of the second signal. A
// thread that does not settle is killed.
func outliveSignals() (undo func()) {
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	return func() { signal.Stop(unread) }
}
