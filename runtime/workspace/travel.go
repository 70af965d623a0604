package workspace

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/gitrepo"
)

// Pack implements [Workspaces]. It removes again what it needs of the workspace's folder.
func (l *Local) Pack(ctx context.Context, w thread.Workspace) (thread.Workspace, []byte, error) {
	if !l.travels() || w.Baseline != "" {
		return w, nil, nil
	}
	s, err := l.of(w)
	if err != nil {
		return w, nil, err
	}
	unlock, err := s.lockMade(ctx)
	if err != nil {
		return w, nil, err
	}
	defer unlock()
	defer func() { _ = s.drop() }() // else a sweep removes it
	src, done, err := s.source(ctx)
	if err != nil {
		return w, nil, err
	}
	defer done()
	known, err := s.published(ctx, src.repo, src.head)
	if err != nil {
		return w, nil, err
	}
	if len(known) == 0 && isShallow(src.repo) {
		src.head = "" // its files travel without the history, which is not whole
	}
	data, err := s.pack(ctx, src, known)
	if err != nil {
		return w, nil, err
	}
	return s.is, data, nil
}

// pack records what the workspace begins with, in s.is, and packs it.
func (s *space) pack(ctx context.Context, src source, known []string) ([]byte, error) {
	if err := s.clear(); err != nil {
		return nil, err
	}
	if err := s.makeParts(src); err != nil {
		return nil, err
	}
	s.Crashpoints.At(CrashPackParts)
	g, err := s.openGit()
	if err != nil {
		return nil, err
	}
	defer g.close()
	commit, err := s.baseline(ctx, g, src)
	if err != nil {
		return nil, err
	}
	s.is.Baseline, s.is.Base, s.is.Prefix = commit, cmp.Or(src.base, commit), src.repo.Prefix
	s.Crashpoints.At(CrashPackBaseline)
	data, err := s.bundle(ctx, g, known, began(s.is)...)
	if err != nil {
		return nil, err
	}
	s.is.Bundle = nameOf(data)
	s.is.Needs, err = neededBy(data)
	s.Crashpoints.At(CrashPackBundle)
	return data, err
}

// neededBy are the commits that a bundle builds upon, as a workspace records them.
func neededBy(bundle []byte) (string, error) {
	head, _, err := readBundle(bundle)
	return strings.Join(head.needs, " "), err
}

// began are the commits that travel of the beginning of a workspace.
func began(w thread.Workspace) []string {
	return slices.Compact([]string{w.Baseline, w.Base})
}

// PackResult implements [Workspaces].
func (l *Local) PackResult(ctx context.Context, w thread.Workspace) (thread.Workspace, []byte, error) {
	if !l.travels() {
		return w, nil, nil
	}
	s, err := l.of(w)
	if err != nil {
		return w, nil, err
	}
	if err := s.elsewhere(); err != nil {
		return w, nil, err
	}
	now, done, err := s.look(ctx)
	if err != nil {
		return w, nil, err
	}
	defer done()
	if w.At, w.AtName, err = s.stillAt(); err != nil {
		return w, nil, err
	}
	if len(now.changes)+len(now.outside) == 0 {
		w.Result, w.ResultBase, w.ResultBundle, w.ResultOf = "", "", "", ""
		now.Result = ""
		return w, nil, s.write(now.about)
	}
	if same, err := now.isResult(ctx, now.Result); err != nil || same && now.Result == w.Result {
		return w, nil, err // others have it
	}
	data, err := now.packResult(ctx, &w)
	if err != nil {
		return w, nil, err
	}
	now.Result = w.Result
	return w, data, s.write(now.about)
}

// stillAt is this machine while other processes work in the workspace. The caller holds its
// lock.
func (s *space) stillAt() (at, name string, err error) {
	others, err := s.usedByOthers()
	if others {
		at, name = s.Machine, s.Called
	}
	return at, name, err
}

// isResult reports whether the files are those of a commit; of none they are not.
func (n *state) isResult(ctx context.Context, commit string) (bool, error) {
	if commit == "" {
		return false, nil
	}
	tree, err := n.git.line(ctx, call{}, "rev-parse", "--verify", commit+"^{tree}")
	return tree == n.tree, err
}

// packResult records what the thread has left, in w, and packs it.
func (n *state) packResult(ctx context.Context, w *thread.Workspace) ([]byte, error) {
	known := []string{w.Baseline}
	if w.Bundle == "" { // nobody else has what it began with
		repo, err := gitrepo.Find(n.Project)
		if err != nil {
			return nil, err
		}
		head, err := n.headOf(ctx, repo)
		if err != nil {
			return nil, err
		}
		if known, err = n.published(ctx, repo, head); err != nil {
			return nil, err
		}
	}
	commit, err := n.commit(ctx, n.git, n.tree, n.Base, "what "+string(w.Of)+" has left")
	if err != nil {
		return nil, err
	}
	data, err := n.bundle(ctx, n.git, known, commit)
	if err != nil {
		return nil, err
	}
	if w.Bundle == "" {
		if w.Needs, err = neededBy(data); err != nil {
			return nil, err
		}
	}
	w.ResultBase, w.Result, w.ResultBundle = n.Base, commit, nameOf(data)
	n.Crashpoints.At(CrashPackResult)
	return data, nil
}

// Send puts what a thread has left in its workspace among its artifacts, for other machines,
// and names it in its metadata. Where nothing travels, nothing is done.
func Send(ctx context.Context, all Workspaces, of records.Thread, meta *thread.Meta) error {
	now, bundle, err := all.PackResult(ctx, *meta.Workspace)
	if err != nil || now == *meta.Workspace {
		return err
	}
	if len(bundle) > 0 {
		now.ResultOf = of.ID()
		if _, err := of.Artifacts().Write(now.ResultBundle, bundle); err != nil {
			return err
		}
	}
	meta.Workspace = &now
	return of.Meta().Write(*meta)
}

// Receive implements [Workspaces].
func (l *Local) Receive(ctx context.Context, w thread.Workspace) error {
	if !l.travels() {
		return nil
	}
	s, err := l.of(w)
	if err != nil {
		return err
	}
	if err := s.elsewhere(); err != nil || w.Result == "" {
		return err
	}
	unlock, err := s.lockMade(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	a, err := s.present()
	switch {
	case isMissing(err) && s.comes(a):
		_, err = s.makeReceived(ctx)
	case isMissing(err):
		return nil
	case err == nil && s.isBehind(a):
		_, err = s.makeAgain(ctx, a)
	}
	return err
}

// comes reports whether a workspace that is not here is made of what travels. One whose
// result was applied here, and which is gone since, begins anew.
func (s *space) comes(a about) bool {
	return s.travels() && s.is.Bundle+s.is.Result != "" && (!a.Gone || a.Result != s.is.Result)
}

// isBehind reports whether the thread has ended on another machine since the files here
// were made.
func (s *space) isBehind(a about) bool {
	return s.travels() && s.is.Bundle+s.is.Result != "" && a.Result != s.is.Result && (s.is.At == "" || s.is.At != s.Machine)
}

// makeAgain makes the files as the thread has left them elsewhere, unless somebody works in
// those that are here, or they have what did not travel. Files that git ignores stay.
func (s *space) makeAgain(ctx context.Context, a about) (about, error) {
	if used, err := s.used(); used || err != nil {
		return a, err
	}
	now := state{space: s}
	if err := now.read(ctx); err != nil {
		return a, err
	}
	defer now.git.close()
	same, err := now.isResult(ctx, cmp.Or(a.Result, a.Base))
	if err != nil || !same || len(now.left) > 0 {
		return a, err
	}
	if err := s.setAside(now.ignored); err != nil {
		return a, err
	}
	return s.makeReceived(ctx)
}

// makeReceived makes the files of a workspace from what travels of it. The caller holds its
// lock.
func (s *space) makeReceived(ctx context.Context) (a about, err error) {
	if err := s.clear(); err != nil {
		return a, err
	}
	repo, err := gitrepo.Find(s.Project)
	if err != nil {
		return a, withoutWorkspace(err)
	}
	if !filepath.IsLocal(filepath.FromSlash(cmp.Or(s.is.Prefix, "."))) {
		return a, altered(fmt.Errorf("%w: its folder is %.100q", errBundle, s.is.Prefix))
	}
	if err := s.makeParts(source{repo: repo}); err != nil {
		return a, err
	}
	s.Crashpoints.At(CrashReceiveParts)
	g, err := s.openGit()
	if err != nil {
		return a, err
	}
	defer g.close()
	commit, err := s.unpackAll(ctx, g)
	if err != nil {
		return a, err
	}
	s.Crashpoints.At(CrashReceiveUnpacked)
	if _, _, err := g.run(ctx, call{index: s.index()}, "read-tree", commit); err != nil {
		return a, altered(err)
	}
	if err := s.checkOut(ctx, g, commit); err != nil {
		return a, err
	}
	s.Crashpoints.At(CrashReceiveFiles)
	if err := s.bringBack(); err != nil {
		return a, err
	}
	a = about{Workspace: s.is, Prefix: s.is.Prefix, Base: cmp.Or(s.is.ResultBase, s.is.Base), Result: s.is.Result}
	if err := os.MkdirAll(s.work(a).Root, 0o700); err != nil { // a project without files
		return a, err
	}
	return a, s.write(a)
}

// unpackAll takes what travels of the workspace, and returns the commit of its files.
func (s *space) unpackAll(ctx context.Context, g *git) (commit string, err error) {
	w := s.is
	if w.Bundle != "" {
		if err := s.unpack(ctx, g, cmp.Or(w.BundleOf, w.Of), w.Bundle, began(w)...); err != nil {
			return "", err
		}
		commit = w.Baseline
	}
	if w.Result != "" {
		if err := s.unpack(ctx, g, w.ResultOf, w.ResultBundle, w.Result); err != nil {
			return "", err
		}
		commit = w.Result
	}
	return commit, g.fits(ctx, commit)
}
