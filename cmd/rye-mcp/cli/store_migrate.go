package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/relocate"
	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/late"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

func newStoreMigrateCommand(sys System, opts *options) *cobra.Command {
	var (
		to             string
		asJSON, dryRun bool
	)
	cmd := &cobra.Command{
		Use:   "migrate --to URL|local",
		Short: "Move the threads of this project to another store",
		Long: `Move all threads of this project to another store, from this machine to a PostgreSQL
server or back: rows, records, the snapshots of items that they work by, and memory.
It is refused while a thread has not ended. Everything is compared before the old place
is put aside under another name, with logs and working trees, which stay. What was cut
short is called again; until then the new place is refused to all others. A project with
workers is not moved, nor one with changes in working trees that were not applied.`,
		Example: `  rye-mcp store migrate --to postgres://rye@db.example/rye --dry-run
  rye-mcp --store postgres://rye@db.example/rye store migrate --to local`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error {
			m := migration{sys: sys, opts: *opts, to: to, dryRun: dryRun}
			done, err := m.run(cmd.Context())
			if err != nil {
				return err
			}
			return conclude(sys, asJSON, done, true, func() error { return m.tell(done) })
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "where to: local, or the URL of a PostgreSQL")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "look and compare only")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// migration moves the threads of one project.
type migration struct {
	sys    System
	opts   options
	to     string
	dryRun bool
}

// migrated is what "store migrate" writes with --json.
type migrated struct {
	From    string        `json:"from"`
	To      string        `json:"to"`
	Project string        `json:"project,omitempty"`
	DryRun  bool          `json:"dry_run,omitempty"`
	Content store.Content `json:"content"`
	Records int           `json:"records"` // threads of which more than the row was moved

	Items  relocate.Items `json:"items"`
	Memory relocate.Noted `json:"memory"`
	Kept   string         `json:"kept,omitempty"` // where the old place is
	// Already: it was put aside by a move that was cut short then.
	Already bool   `json:"already,omitempty"`
	Next    string `json:"next,omitempty"`
}

func (m migration) run(ctx context.Context) (done migrated, err error) {
	dir, err := projectDir(m.sys, m.opts)
	if err == nil {
		dir, err = canonical(dir)
	}
	if err != nil {
		return done, err
	}
	source, target, err := m.sites(ctx, dir)
	if err != nil {
		return done, err
	}
	done = migrated{From: source.url.String(), To: target.url.String(), Project: target.project, DryRun: m.dryRun}
	from, err := m.open(ctx, dir, source, false)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	place, err := m.placeOf(dir, source)
	if err != nil {
		return done, err
	}
	if now, err := from.store.Now(ctx); err != nil {
		return done, err
	} else if now == nil {
		return m.conclude(ctx, dir, source, target, place, done)
	}
	if _, err := from.control.Threads.Sweep(ctx); err != nil {
		return done, err
	}
	if err := unattended(ctx, from); err != nil {
		return done, err
	}
	if err := applied(ctx, from); err != nil {
		return done, err
	}
	to, begun, err := m.target(ctx, dir, target, from, place)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if !m.dryRun {
		if err := late.Make(ctx, to.store); err != nil {
			return done, err
		}
	}
	told, err := m.move(ctx, from, to, place, begun)
	done.Content, done.Records, done.Items, done.Memory, done.Kept = told.Content, told.Records, told.Items, told.Memory, told.Kept
	if err == nil && !m.dryRun {
		done.Next = m.notSet(ctx, dir, target)
	}
	return done, err
}

func (m migration) move(ctx context.Context, from, to *project, place string, begun bool) (relocate.Moved, error) {
	memory, err := newMovedMemory(from, to)
	if err != nil {
		return relocate.Moved{}, err
	}
	old := endOf(from)
	there, err := m.placeOf(to.path, to.state.site)
	if err != nil {
		return relocate.Moved{}, err
	}
	old.Retire = func(ctx context.Context) (string, error) { return retire(ctx, from, there) }
	return relocate.Move{
		From: old, To: endOf(to), Memory: memory, Only: m.dryRun, Begun: begun, Crashpoints: m.sys.Crashpoints,
		Mark: func(ctx context.Context, stage relocate.Stage) error { return setMoving(ctx, to, place, stage) },
	}.Run(ctx)
}

func endOf(p *project) relocate.End {
	return relocate.End{Rows: rowsOf(p), Records: p.records(), Items: p.control.Threads.Snapshots}
}

// rowsOf is the store of a project itself; nil where there is none yet.
func rowsOf(p *project) relocate.Rows {
	if at := p.flows.Load(); at != nil {
		return *at
	}
	return nil
}

// sites are where the threads are and where they are to be.
func (m migration) sites(ctx context.Context, dir string) (source, target site, err error) {
	user, err := userSpace(m.sys)
	if err != nil {
		return source, target, err
	}
	roots := spacesOf(dir, user)
	if source, err = siteOf(ctx, m.sys, roots); err != nil {
		return source, target, err
	}
	if m.to == "" {
		return source, target, &usageError{message: "--to says where the threads go", try: "--to local, or --to postgres://user@host/database"}
	}
	wish := m.sys
	wish.store = &storeWish{flag: m.to, env: func() string { return "" }}
	if _, from, err := wish.wishedStore(); err != nil || from == "" {
		if err == nil {
			err = &usageError{message: "a thread moves no threads to another store", try: "rye-mcp store migrate in a terminal of your own"}
		}
		return source, target, err
	}
	if target, err = siteOf(ctx, wish, roots); err != nil {
		return source, target, err
	}
	if !target.url.SamePlace(source.url) {
		return source, target, nil
	}
	if !target.shared() {
		return source, target, &usageError{message: "the threads are there already: " + source.url.String(), try: "rye-mcp store status"}
	}
	return site{}, source, nil // the setting was made first: those of this machine are to come after it
}

// notSet says how the settings are made to lead where the threads are now; empty: they do.
func (m migration) notSet(ctx context.Context, dir string, target site) string {
	settings := m.sys
	if m.sys.store != nil {
		settings.store = &storeWish{env: m.sys.store.env}
	}
	user, err := userSpace(m.sys)
	if err == nil {
		if at, err := siteOf(ctx, settings, spacesOf(dir, user)); err == nil && at.url.SamePlace(target.url) {
			return ""
		}
	}
	set := fmt.Sprintf("rye-mcp config set --user %s store.url ", config.StoreSettings)
	if !target.shared() {
		return set + storeurl.Local
	}
	return fmt.Sprintf("%s%q makes it so for every project; or %s in the environment", set, m.to, storeurl.Variable)
}

// open puts the project together around one of the two stores, as who moves threads there.
func (m migration) open(ctx context.Context, dir string, at site, moving bool) (*project, error) {
	sys := m.sys.handedStore(spawn.Inheritance{Store: at.handOver()}, dir)
	sys.store.connections, sys.store.moving = connectionsOfMove, moving
	state, err := newState(ctx, sys, dir)
	if err != nil {
		return nil, err
	}
	return assembleAround(ctx, sys, state, zerolog.Nop(), mendedStore, threadItems{})
}

// connectionsOfMove is how many connections a move has to a server: one that keeps others
// from the rows, one from memory, and two to read and write by.
const connectionsOfMove = 4

// retire puts a place of a project aside, under a name that it returns. Moved says where the
// threads are now; empty: they are not moved.
func retire(ctx context.Context, p *project, moved string) (kept string, err error) {
	if p.state.site.shared() {
		server, err := p.server.get(ctx)
		if err != nil {
			return "", err
		}
		kept, err := server.Retire(ctx, p.state.site.project, moved)
		return "schema " + kept, p.state.site.fault(err)
	}
	dir := p.state.Home().Dir
	kept = dir + ".moved-" + p.state.finder.Now().UTC().Format("20060102T150405.000") // two in a second are apart
	if err := os.Rename(dir, kept); err != nil {
		return "", err
	}
	return kept, syncFolder(filepath.Dir(dir))
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (m migration) tell(done migrated) error {
	if done.Already {
		opened := "is open to others now"
		if m.dryRun {
			opened = "would be opened to others"
		}
		_, err := fmt.Fprintf(m.sys.Stdout, "all was moved already (%s) from %s to %s, which %s\n", counted(int(done.Content.Threads), "thread"), done.From, done.To, opened)
		return m.tellNext(done, err)
	}
	verb := "moved"
	if m.dryRun {
		verb = "would move"
	}
	_, err := fmt.Fprintf(m.sys.Stdout, "%s %s (%s, %s) and the records of %d from %s to %s\n", verb,
		counted(int(done.Content.Threads), "thread"), thread.Micros(done.Content.Spend), counted(int(done.Content.Rows), "row"), done.Records, done.From, done.To)
	if err != nil || done.Kept == "" {
		return err
	}
	return m.tellMoved(done)
}

// tellMoved says what went with the threads, and what to do next.
func (m migration) tellMoved(done migrated) error {
	if n := done.Items.Lost; n > 0 {
		_, err := fmt.Fprintf(m.sys.Stderr, "Warning: %s by snapshots of items that are missing or altered, here as there; rye-mcp threads verify --all names them\n",
			verb(n, "a thread works", fmt.Sprintf("%d threads work", n)))
		if err != nil {
			return err
		}
	}
	if err := tellDamaged(m.sys, done.Memory.Refused); err != nil {
		return err
	}
	_, err := fmt.Fprintf(m.sys.Stdout, `with them: %s of items, %d %s of memory, %s
all of it is the same there; what was here is kept as %s, with logs and working trees
`, counted(done.Items.Snapshots, "snapshot"), done.Memory.Entries, verb(done.Memory.Entries, "entry", "entries"), counted(done.Memory.Texts, "stored text"), done.Kept)
	return m.tellNext(done, err)
}

// tellNext says what to do next, unless what was said before it could not be.
func (m migration) tellNext(done migrated, err error) error {
	if err != nil || done.Next == "" {
		return err
	}
	_, err = fmt.Fprintf(m.sys.Stdout, "next: %s\n", done.Next)
	return err
}
