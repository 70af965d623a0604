package threads

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/lineage"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/workspace"
)

// SendWorkspace records in the metadata of a thread what its workspace begins with, and puts
// it among its artifacts for the machine that runs it. A thread that works in the workspace of
// another is told where that is. Where the threads of the project run on one machine, nothing
// is done.
func (t *Threads) SendWorkspace(ctx context.Context, rec thread.Record, meta *thread.Meta) error {
	w := meta.Workspace
	if w == nil || t.Workspaces == nil || t.Fleet == nil {
		return nil
	}
	if !meta.OwnWorkspace() {
		_, now, err := t.WorkspaceNow(ctx, w.Of, w.Name)
		if now != nil {
			meta.Workspace = now
		}
		return err
	}
	if w.Applied != "" && w.Applied == w.Result && w.At == "" {
		w = w.Again()
		meta.Workspace = w
	}
	if w.Baseline != "" || w.At != "" {
		return nil
	}
	if pinned, err := t.bringSource(ctx, meta); pinned || err != nil {
		return err
	}
	now, bundle, err := t.Workspaces.Pack(ctx, *w)
	if err != nil || len(bundle) == 0 {
		return err
	}
	now.BundleOf = rec.ThreadID
	if _, err := t.Records.By(rec.ThreadID, rec.Run).Artifacts().Write(now.Bundle, bundle); err != nil {
		return fmt.Errorf("keep what the thread's workspace begins with: %w", err)
	}
	meta.Workspace = &now
	return nil
}

// bringSource has the workspace that another begins with here. Where a machine alone has it,
// the other one is made there: it is pinned.
func (t *Threads) bringSource(ctx context.Context, meta *thread.Meta) (pinned bool, err error) {
	w := *meta.Workspace
	if w.From == "" || w.FromOf == "" {
		return false, nil
	}
	_, source, err := t.WorkspaceNow(ctx, w.FromOf, w.From)
	if err != nil || source == nil { // it has got another since
		return false, err
	}
	err = t.Workspaces.Receive(ctx, *source)
	if errors.As(err, new(*workspace.ElsewhereError)) && source.At != "" {
		w.At, w.AtName = source.At, source.AtName
		meta.Workspace = &w
		return true, nil
	}
	return false, err
}

// WorkspaceNow is the workspace of a thread as it stands: as the newest thread records it that
// continues the one which it was made for. It is nil where that has another by now, or was
// deleted.
func (t *Threads) WorkspaceNow(ctx context.Context, of thread.ID, name string) (owner thread.Record, now *thread.Workspace, err error) {
	owner, err = lineage.Resolve(of, t.Getter(ctx))
	if errors.Is(err, thread.ErrNotFound) || errors.As(err, new(*thread.DeletedError)) {
		return owner, nil, nil
	}
	if err != nil {
		return owner, nil, err
	}
	meta, err := t.OwnMeta(owner.ThreadID)
	if err != nil || meta.Workspace == nil || meta.Workspace.Name != name {
		return owner, nil, err
	}
	return owner, meta.Workspace, nil
}

// errNotBegun says that nobody works yet in the workspace of a thread that is to, and whose
// machine has the files then.
var errNotBegun = errors.New("the thread whose workspace it works in has not begun")

// HasWorkspace returns an error where a thread that is queued works in a workspace that this
// machine does not have and cannot make, and another may. The thread's own process says what
// else is wrong.
func (t *Threads) HasWorkspace(ctx context.Context, meta thread.Meta) error {
	if meta.Workspace == nil || t.Workspaces == nil || t.Fleet == nil {
		return nil
	}
	w, begun := t.workspaceFor(ctx, meta)
	if !begun {
		return errNotBegun
	}
	if err := t.lacking.of(w.Needs); err != nil {
		return err
	}
	err := t.Workspaces.Check(ctx, *w)
	lacks, isLacking := errors.AsType[*workspace.LacksError](err)
	if isLacking {
		t.lacking.add(w.Needs, err)
		t.Fleet.Lacks(ctx, strings.Fields(w.Needs), lacks.Commit)
		return err
	}
	if errors.As(err, new(*workspace.ElsewhereError)) {
		return err
	}
	if w.Needs != "" {
		t.Fleet.Lacks(ctx, strings.Fields(w.Needs), "")
	}
	return nil
}

// WorkspaceFor is the workspace that a thread works in, as it stands; nil: it has none.
func (t *Threads) WorkspaceFor(ctx context.Context, meta thread.Meta) *thread.Workspace {
	w, _ := t.workspaceFor(ctx, meta)
	return w
}

// workspaceFor is WorkspaceFor. One of another thread has begun once that, or who continues
// it, works in it or has ended.
func (t *Threads) workspaceFor(ctx context.Context, meta thread.Meta) (w *thread.Workspace, begun bool) {
	w = meta.Workspace
	if w == nil || meta.OwnWorkspace() {
		return w, true
	}
	owner, now, err := t.WorkspaceNow(ctx, w.Of, w.Name)
	if err != nil || now == nil {
		return w, true
	}
	return now, now.At != "" || owner.Status.Terminal()
}

// lackAgain is after which time the checkout is looked at again for commits that it lacked.
const lackAgain = 2 * time.Second

// lacking are the commits that the checkout here has been seen to lack.
type lacking struct{ seen sync.Map } // by [thread.Workspace.Needs]

// lackedAt is what was lacking at a look.
type lackedAt struct {
	err error
	at  time.Time
}

func (l *lacking) add(needs string, err error) { l.seen.Store(needs, lackedAt{err, time.Now()}) }

// of is what was found lacking a moment ago: the queue is looked at with every commit, and git
// is a process.
func (l *lacking) of(needs string) error {
	seen, ok := l.seen.Load(needs)
	if !ok {
		return nil
	}
	if lacked := seen.(lackedAt); time.Since(lacked.at) < lackAgain {
		return lacked.err
	}
	l.seen.Delete(needs)
	return nil
}
