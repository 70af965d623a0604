package cli

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/rye-mcp/rye-mcp/orchestrator/relocate"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// movingFile is beside the threads of this machine while they are on their way to it, and
// says where they come from. On a server the schema has that as its comment.
const movingFile = "moving"

// allThere ends that text when nothing is missing any more, and the old place is put aside.
const allThere = "\nall of it is there"

// unfinished refuses threads of this machine that are on their way to it.
func (s System) unfinished(dir string) error {
	if s.store != nil && s.store.moving {
		return nil
	}
	from, is, err := readMoving(dir)
	if err != nil || !is {
		return err
	}
	moving := &store.MovingError{From: strings.TrimSuffix(from, allThere)}
	return tool.Faultf(tool.CodeStore, "%w", moving).WithTry("%s", moving.Try()).
		WithHint("Threads can neither be started nor looked at before that has ended. Tell the person.")
}

func readMoving(dir string) (text string, is bool, err error) {
	if dir == "" { // there is none
		return "", false, nil
	}
	said, err := os.ReadFile(filepath.Join(dir, movingFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(said), err == nil, err
}

// movingTo says from where threads are being moved to a project, and how far that is.
func movingTo(ctx context.Context, p *project) (from string, stage relocate.Stage, err error) {
	if _, err := p.store.Now(ctx); err != nil {
		return "", 0, err
	}
	text, is, err := movingMark(ctx, p)
	if err != nil || !is {
		return "", relocate.Ended, err
	}
	from, complete := strings.CutSuffix(text, allThere)
	if complete {
		stage = relocate.Complete
	}
	return from, stage, nil
}

// movingMark is the mark of a place that threads are being moved to, where it has one.
func movingMark(ctx context.Context, p *project) (text string, is bool, err error) {
	if !p.state.site.shared() {
		return readMoving(p.state.Home().Dir)
	}
	server, err := p.server.get(ctx)
	if err != nil {
		return "", false, err
	}
	text, err = server.Moving(ctx, p.state.site.project)
	return text, text != "", p.state.site.fault(err)
}

// setMoving notes from where threads are being moved to a project, and how far that is.
func setMoving(ctx context.Context, p *project, from string, stage relocate.Stage) error {
	switch stage {
	case relocate.Begun:
	case relocate.Complete:
		from += allThere
	case relocate.Ended:
		from = ""
	}
	if p.state.site.shared() {
		server, err := p.server.get(ctx)
		if err != nil {
			return err
		}
		return p.state.site.fault(server.SetMoving(ctx, p.state.site.project, from))
	}
	dir := p.state.Home().Dir
	file := filepath.Join(dir, movingFile)
	if from == "" {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return syncFolder(dir)
	}
	// A file that a loss of power has emptied would let others in.
	if err := renameio.WriteFile(file, []byte(from), 0o600, renameio.WithTempDir(dir)); err != nil {
		return err
	}
	return syncFolder(dir)
}

// placeOf names a place of the project on all machines.
func (m migration) placeOf(dir string, at site) (string, error) {
	if at.shared() {
		return at.url.String() + " " + at.project, nil
	}
	host, err := m.sys.Hostname()
	return host + ":" + dir, err
}

// target opens where threads go. Of a move from the same place that was cut short, what it
// left there is put aside if it is not what is here now: nobody but a move could use it.
func (m migration) target(ctx context.Context, dir string, at site, from *project, place string) (to *project, begun bool, err error) {
	if to, err = m.open(ctx, dir, at, true); err != nil {
		return nil, false, err
	}
	was, stage, err := movingTo(ctx, to)
	over := false
	if err == nil && was == place && stage == relocate.Complete {
		over, err = begunAnew(ctx, from, to)
	}
	switch {
	case err != nil, stage == relocate.Ended:
	case over && m.dryRun:
	case over:
		err = setMoving(ctx, to, place, relocate.Ended)
	case was != place:
		err = tool.Faultf(tool.CodeConflict, "threads are being moved there from %s", was).
			WithTry("let that end, there; or another name in store.project, or another database")
	case !m.dryRun:
		begun = true
		to, err = m.afresh(ctx, dir, at, from, to)
	default:
		begun = true
	}
	if err != nil && to != nil {
		err, to = errors.Join(err, to.Close()), nil
	}
	return to, begun, err
}

// begunAnew reports whether the old place of a move knows nothing of what its new one has: it was
// put aside, and somebody has begun there since. The moved threads are in the new place alone
// then. Ids alone do not tell: a place that is begun anew counts anew.
func begunAnew(ctx context.Context, from, to *project) (bool, error) {
	rows, _, err := to.store.List(ctx, store.Filter{Limit: store.MaxPage})
	if err != nil || len(rows) == 0 {
		return false, err
	}
	began := make(map[thread.ID]time.Time, len(rows))
	for _, rec := range rows {
		began[rec.ThreadID] = rec.CreatedAt
		had, err := from.store.Get(ctx, rec.ThreadID)
		if err != nil && !errors.Is(err, thread.ErrNotFound) {
			return false, err
		}
		if err == nil && had.CreatedAt.Equal(rec.CreatedAt) {
			return false, nil
		}
	}
	gone, err := from.store.Deletions(ctx, store.DeletionFilter{IDs: slices.Collect(maps.Keys(began))})
	isOne := func(d store.Deletion) bool { return d.Record.CreatedAt.Equal(began[d.Record.ThreadID]) }
	return !slices.ContainsFunc(gone, isOne), err
}

// conclude ends a move whose old place is put aside already: it was cut short before others could
// use the new one.
func (m migration) conclude(ctx context.Context, dir string, source, at site, place string, done migrated) (_ migrated, err error) {
	to, err := m.open(ctx, dir, at, true)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	was, stage, err := movingTo(ctx, to)
	if err != nil {
		return done, err
	}
	if was != place || stage != relocate.Complete {
		return done, &usageError{message: "no thread of this project is kept at " + source.url.String(), try: "rye-mcp store status"}
	}
	done.Already = true
	if done.Content, err = rowsOf(to).Content(ctx); err != nil || m.dryRun {
		return done, err
	}
	done.Next = m.notSet(ctx, dir, at)
	return done, setMoving(ctx, to, place, relocate.Ended)
}

// afresh puts rows aside that are not those of the old place, and opens the new one again.
func (m migration) afresh(ctx context.Context, dir string, at site, from, to *project) (*project, error) {
	rows := rowsOf(to)
	if rows == nil {
		return to, nil
	}
	has, err := rows.Content(ctx)
	if err != nil || has.Rows == 0 {
		return to, err
	}
	wanted, err := rowsOf(from).Content(ctx)
	if err != nil || has.Same(wanted) {
		return to, err
	}
	if _, err := retire(ctx, to, ""); err != nil {
		return to, err
	}
	if err := to.Close(); err != nil {
		return nil, err
	}
	return m.open(ctx, dir, at, true)
}

// unattended refuses to take threads away under workers, which would look for them for ever.
func unattended(ctx context.Context, p *project) error {
	if !p.state.site.shared() {
		return nil
	}
	server, err := p.server.get(ctx)
	if err != nil {
		return err
	}
	seen, err := (&fleet.Fleet{Pool: server.Pool()}).Workers(ctx)
	if err != nil {
		return p.state.site.fault(err)
	}
	var names []string
	for _, w := range seen {
		if w.Alive && slices.Contains(w.Projects, p.state.site.project) {
			names = append(names, w.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return tool.Faultf(tool.CodeConflict, "the project has workers: %s", strings.Join(names, ", ")).
		WithTry("end them, and the servers of the project on all machines, then move the threads; rye-mcp workers list")
}

// mostNamed bounds the threads that an error names.
const mostNamed = 5

// applied refuses to leave changes in working trees behind: they stay with the old place,
// where no command finds them any more.
func applied(ctx context.Context, p *project) error {
	var ids []string
	n := 0
	err := store.EachRow(ctx, p.store, nil, func(rec thread.Record) error {
		if p.control.Changed.Unapplied(ctx, rec) == "" {
			return nil
		}
		if n++; n <= mostNamed {
			ids = append(ids, string(rec.ThreadID))
		}
		return nil
	})
	if err != nil || n == 0 {
		return err
	}
	if n > mostNamed {
		ids = append(ids, "…")
	}
	return tool.Faultf(tool.CodeConflict, "%s with changes in working trees that were not applied, which do not move: %s", counted(n, "thread"), strings.Join(ids, ", ")).
		WithTry("rye-mcp threads diff %s, then rye-mcp threads apply or delete it", ids[0])
}
