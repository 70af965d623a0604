package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/recovery"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// storeOpener opens the thread store of a project whose other parts are there.
type storeOpener func(ctx context.Context, sys System, p *project, s place.State, log zerolog.Logger) (*sqlite.Store, error)

// plainStore opens the store as it is, for who only looks.
func plainStore(ctx context.Context, _ System, p *project, s place.State, _ zerolog.Logger) (*sqlite.Store, error) {
	return sqlite.Open(ctx, s.Dir, p.storeOptions(s))
}

// scratchStore is a store for one replay.
func scratchStore(ctx context.Context, dir string) (*sqlite.Store, error) {
	return sqlite.Open(ctx, filepath.Join(dir, scratchThreads), sqlite.Options{})
}

func openAsItIs(ctx context.Context, here process.Place, s place.State) (*sqlite.Store, error) {
	return sqlite.Open(ctx, s.Dir, storeOptions(here, s))
}

// storeOptions are those of every store: the mark that its databases carry, who this
// is, and who holds a lock.
func storeOptions(here process.Place, s place.State) sqlite.Options {
	return sqlite.Options{Mark: s.Seal.Mark, Process: thread.Process(here.Self()), Holder: func(recorded thread.Process, files ...string) thread.Holder {
		id, stopped := here.Holder(process.ID(recorded), files...)
		return thread.Holder{Process: thread.Process(id), Near: here.Reach(id) == process.Near, Stopped: stopped}
	}}
}

// storeOptions are those of a store that stays open: a folder that is put in
// its place meanwhile must be the user's too.
func (p *project) storeOptions(s place.State) sqlite.Options {
	options := storeOptions(p.place, s)
	options.Ours = func() error { return p.state.stillIn(s.Dir) }
	return options
}

// threadPatience is how long the process of a thread waits for one that holds the
// database: it has paid for what it would lose, and nobody to ask. It can be
// cancelled meanwhile.
const threadPatience = 10 * time.Minute

// threadStore opens the store for a thread's process. Rows that are missing are
// made again, the thread's own among them; a damaged database is left to those
// who can say so to a person.
func threadStore(ctx context.Context, sys System, p *project, s place.State, log zerolog.Logger) (*sqlite.Store, error) {
	if err := takeOverDatabases(ctx, sys, p, s, log); err != nil {
		return nil, err
	}
	options := p.storeOptions(s)
	options.Rebuild = rebuilder(sys, p, log)
	options.Patience = sqlite.Patience{Idle: threadPatience, Stopped: threadPatience}
	options.OneConnection = true
	return sqlite.Open(ctx, s.Dir, options)
}

// rebuilder makes missing rows again while the project is open.
func rebuilder(sys System, p *project, log zerolog.Logger) func(context.Context, *sqlite.Store) error {
	return func(ctx context.Context, opened *sqlite.Store) error { return rebuild(ctx, sys, p, opened, log) }
}

// mendedStore opens the store. A damaged database is kept aside, and the rows it
// had are made again from the threads' folders, which is said. The same is done
// when that becomes necessary while the project is open.
func mendedStore(ctx context.Context, sys System, p *project, s place.State, log zerolog.Logger) (*sqlite.Store, error) {
	if err := takeOverDatabases(ctx, sys, p, s, log); err != nil {
		return nil, err
	}
	opened, err := openSound(ctx, sys, p, s, log)
	if err != nil {
		return nil, err
	}
	lost, err := opened.Lost(ctx)
	if err == nil && lost {
		err = rebuild(ctx, sys, p, opened, log)
	}
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// openSound opens the store, and sets aside what is damaged: one of its two
// databases, or both.
func openSound(ctx context.Context, sys System, p *project, s place.State, log zerolog.Logger) (*sqlite.Store, error) {
	const databases = 2
	options := p.storeOptions(s)
	options.Rebuild = rebuilder(sys, p, log)
	options.Damaged = func(ctx context.Context, damage *store.CorruptError) {
		if err := setAside(ctx, sys, s, damage, log); err != nil {
			log.Error().Err(err).Msg("set aside a damaged thread database")
		}
	}
	for tries := 0; ; tries++ {
		opened, err := sqlite.Open(ctx, s.Dir, options)
		damage, damaged := errors.AsType[*store.CorruptError](err)
		if !damaged || tries == databases {
			return opened, err
		}
		if err := setAside(ctx, sys, s, damage, log); err != nil {
			return nil, errors.Join(damage, err)
		}
	}
}

// setAside keeps a damaged database under another name and says so.
func setAside(ctx context.Context, sys System, s place.State, damage *store.CorruptError, log zerolog.Logger) error {
	aside, err := sqlite.SetAside(ctx, damage.Path, sys.Now(), s.Seal.Mark)
	if err == nil && aside != "" { // else another process was first
		warn(sys, log.Warn().Err(damage.Err).Str("kept", aside), fmt.Sprintf(
			"the thread database %s is damaged (%v); it is kept as %s", damage.Path, damage.Err, filepath.Base(aside)))
	}
	return err
}

// takeOverDatabases deals with the databases of state that was taken over, which
// carry no mark. Where a thread runs they are those of this machine, and are used on;
// else they may be anybody's, and what they knew is told by the threads' folders.
func takeOverDatabases(ctx context.Context, sys System, p *project, s place.State, log zerolog.Logger) error {
	if !s.TakingOver {
		return nil
	}
	live, err := runsHere(s.Dir)
	if err == nil && live {
		err = sqlite.Claim(ctx, s.Dir, s.Seal.Mark)
	} else if err == nil {
		err = p.keepFormer(ctx, sys, s, log)
	}
	if err == nil {
		sys.Crashpoints.At(place.CrashDatabases)
		err = p.state.takenOver()
	}
	if err != nil {
		return fmt.Errorf("take over what earlier threads left: %w", err)
	}
	return nil
}

// rememberTime bounds the reading of a database that may be anybody's.
const rememberTime = 10 * time.Second

// keepFormer keeps databases of before there were marks under another name. Names
// and request keys stand nowhere else, and are remembered for the rebuilding.
func (p *project) keepFormer(ctx context.Context, sys System, s place.State, log zerolog.Logger) error {
	remembering, stop := context.WithTimeout(ctx, rememberTime)
	defer stop()
	var err error
	if p.remembered, err = sqlite.Remember(remembering, s.Dir); err != nil {
		log.Warn().Err(err).Msg("threads that are taken over are called like their directives")
	}
	for _, path := range sqlite.Files(s.Dir) {
		aside, err := sqlite.SetAside(ctx, path, sys.Now(), s.Seal.Mark)
		if err != nil {
			return err
		}
		if aside != "" {
			log.Info().Str("kept", aside).Msg("the threads of an earlier rye-mcp are taken over from their folders")
		}
	}
	return nil
}

// rebuild makes missing rows again and says which, unless another process has just
// done so.
func rebuild(ctx context.Context, sys System, p *project, opened *sqlite.Store, log zerolog.Logger) error {
	done, err := (&recovery.Rebuilder{
		Records: p.records(), Store: opened, Life: p.life, Host: p.place.Host, Remembered: p.remembered,
	}).Run(ctx)
	if err != nil {
		return fmt.Errorf("rebuild the rows of threads: %w", err)
	}
	if done.Threads+done.Budgets+len(done.Skipped) == 0 {
		return nil
	}
	warn(sys, log.Warn().Int("threads", done.Threads).Int("budgets", done.Budgets).Int("skipped", len(done.Skipped)),
		fmt.Sprintf("rebuilt from the thread folders: %s and %s; %s could not be read",
			counted(done.Threads, "thread"), counted(done.Budgets, "budget"), counted(len(done.Skipped), "folder")))
	for _, s := range done.Skipped {
		warn(sys, log.Warn().Err(s.Why).Str("thread_id", string(s.ThreadID)), fmt.Sprintf("not rebuilt: %s: %v", s.ThreadID, s.Why))
	}
	return nil
}

// warn tells a person and the log. Commands have no log, and a server's need not
// be where a person looks.
func warn(sys System, event *zerolog.Event, message string) {
	event.Msg(message)
	_, _ = fmt.Fprintf(sys.Stderr, "Warning: %s\n", plain.Line(message))
}
