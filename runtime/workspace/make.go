package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/tools/gitrepo"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// withoutWorkspace says what else can be done where there can be none.
func withoutWorkspace(err error) error {
	f := tool.AsFault(err)
	return tool.Faultf(f.Code, "no workspace can be made: %s", f.Message).
		WithHint("Start the thread without a workspace: it works in the project itself.").WithTry("%s", cmp.Or(f.Try, "git init, or a start without a workspace"))
}

// Enter implements [Workspaces].
func (l *Local) Enter(ctx context.Context, w thread.Workspace) (thread.Workspace, tool.Work, func(), error) {
	s, err := l.of(w)
	if err != nil {
		return w, tool.Work{}, nil, err
	}
	unlock, err := s.lockMade(ctx)
	if err != nil {
		return w, tool.Work{}, nil, err
	}
	defer unlock()
	if err := s.elsewhere(); err != nil {
		return w, tool.Work{}, nil, err
	}
	a, err := s.present()
	switch {
	case isMissing(err) && s.comes(a):
		a, err = s.makeReceived(ctx)
	case isMissing(err):
		a, err = s.make(ctx, a)
	case err == nil && s.isBehind(a):
		a, err = s.makeAgain(ctx, a)
	}
	if err != nil {
		return w, tool.Work{}, nil, err
	}
	leave, err := s.begin()
	return s.entered(a), s.work(a), leave, err
}

// begin is enter, for the first who comes without what a killed process has left.
func (s *space) begin() (leave func(), err error) {
	used, err := s.used()
	if err == nil && !used {
		err = s.unlockGit()
	}
	if err != nil {
		return nil, err
	}
	return s.enter()
}

// entered is the workspace as a thread that works in it records it: where the threads have
// several machines, with this one.
func (s *space) entered(a about) thread.Workspace {
	if !s.travels() {
		return a.Workspace
	}
	w := s.is
	if a.Workspace.Baseline != w.Baseline { // it was made here
		w = a.Workspace
	}
	w.At, w.AtName = s.Machine, s.Called
	return w
}

// source is what a workspace begins with.
type source struct {
	repo *gitrepo.Repository // of the project
	head string              // its commit; empty: none that can be borrowed
	from *space              // another workspace, whose files it begins with; nil: the project's
	base string              // what changes are counted from; empty: what it begins with
}

// make makes the files of a workspace. The caller holds its lock. Files that
// a crash has left are made again.
func (s *space) make(ctx context.Context, before about) (about, error) {
	if err := s.clear(); err != nil {
		return before, err
	}
	src, done, err := s.source(ctx)
	if err != nil {
		return before, err
	}
	defer done()
	if err := s.makeParts(src); err != nil {
		return before, err
	}
	s.Crashpoints.At(CrashMakeParts)
	g, err := s.openGit()
	if err != nil {
		return before, err
	}
	defer g.close()
	commit, err := s.baseline(ctx, g, src)
	if err != nil {
		return before, err
	}
	s.Crashpoints.At(CrashMakeBaseline)
	if err := s.checkOut(ctx, g, commit); err != nil {
		return before, err
	}
	s.Crashpoints.At(CrashMakeFiles)
	a := about{Workspace: s.is, Prefix: src.repo.Prefix, Base: cmp.Or(src.base, commit), AppliedAt: before.AppliedAt}
	a.Workspace = s.madeHere(commit)
	if err := os.MkdirAll(s.work(a).Root, 0o700); err != nil { // a project without files
		return before, err
	}
	return a, s.write(a)
}

// madeHere is the workspace as it begins with a commit that has not travelled.
func (s *space) madeHere(commit string) thread.Workspace {
	w := s.is
	return thread.Workspace{Type: w.Type, Name: w.Name, Of: w.Of, From: w.From, FromOf: w.FromOf, Copied: w.Copied, Baseline: commit}
}

// clear removes what a crash, or another workspace of the name, has left.
func (s *space) clear() error {
	for _, part := range []string{s.tree(), s.git(), s.lent(), s.index()} {
		if err := removeAll(part); err != nil {
			return err
		}
	}
	return nil
}

// source finds what the workspace begins with. Done lets go of it.
func (s *space) source(ctx context.Context) (src source, done func(), err error) {
	done = func() {}
	if src.repo, err = gitrepo.Find(s.Project); err != nil {
		return src, done, withoutWorkspace(err)
	}
	src.head, err = s.headOf(ctx, src.repo)
	if err != nil || s.is.From == "" {
		return src, done, err
	}
	from, err := s.of(thread.Workspace{Name: s.is.From})
	if err != nil {
		return src, done, err
	}
	unlock, err := from.lock(ctx)
	if isMissing(err) { // it was clean, and is gone
		return src, done, nil
	}
	if err != nil {
		return src, done, err
	}
	a, err := from.present()
	if err != nil {
		unlock()
		if isMissing(err) {
			return src, done, nil
		}
		return src, done, err
	}
	if src.from = from; s.is.Copied {
		src.base = a.Base
	}
	return src, unlock, nil
}

// headOf is the commit of a repository that a baseline follows. There is none before the
// first commit, and none of a repository that borrows its objects, which could be those
// of any other.
func (s *space) headOf(ctx context.Context, repo *gitrepo.Repository) (string, error) {
	if repo.Borrows() {
		return "", nil
	}
	g, err := s.openShadow(repo)
	if err != nil {
		return "", err
	}
	defer g.close()
	out, code, err := g.run(ctx, call{tree: repo.Top, fails: true}, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil || code != 0 {
		return "", err
	}
	return strings.TrimSpace(string(out)), nil
}

// openShadow is git in the project's repository. The caller closes it.
func (s *space) openShadow(repo *gitrepo.Repository) (*git, error) {
	environ := s.environ()
	program, err := gitrepo.Program(s.Program, environ)
	if err != nil {
		return nil, err
	}
	dir, err := repo.Shadow(s.Scratch)
	return &git{program: program, dir: dir, environ: environ}, err
}

// makeParts makes the folders of a workspace that git needs.
func (s *space) makeParts(src source) error {
	config := gitrepo.RawConfig(src.repo.Config())
	if err := makeGit(s.git(), []byte(config)); err != nil {
		return err
	}
	if _, err := src.repo.Lend(s.lent()); err != nil {
		return err
	}
	alternates := filepath.Join(s.git(), "objects", "info", "alternates")
	if err := os.WriteFile(alternates, []byte(filepath.Join(s.lent(), "objects")+"\n"), 0o600); err != nil {
		return err
	}
	for _, name := range []string{"info/exclude", "shallow"} {
		if err := copySmall(filepath.Join(src.repo.Common, name), filepath.Join(s.git(), name)); err != nil {
			return err
		}
	}
	if src.from == nil {
		return nil
	}
	return linkTree(filepath.Join(src.from.git(), "objects"), filepath.Join(s.git(), "objects"))
}

// baseline records the files that the workspace begins with as a commit.
func (s *space) baseline(ctx context.Context, g *git, src source) (string, error) {
	top, listed, err := s.list(ctx, g, src)
	if err != nil {
		return "", err
	}
	tree, _, err := g.snapshot(ctx, top, s.index(), listed, s.leftOut(src.repo.Prefix))
	if err != nil {
		return "", err
	}
	return s.commit(ctx, g, tree, src.head, "files of the project when "+string(s.is.Of)+" began")
}

// list names the files of what the workspace begins with.
func (s *space) list(ctx context.Context, g *git, src source) (top string, listed []byte, err error) {
	if src.from != nil {
		listed, _, err = g.run(ctx, call{tree: src.from.tree(), index: src.from.index()}, listFiles...)
		return src.from.tree(), listed, err
	}
	project, err := s.openShadow(src.repo)
	if err != nil {
		return "", nil, err
	}
	defer project.close()
	listed, _, err = project.run(ctx, call{tree: src.repo.Top}, listFiles...)
	return src.repo.Top, listed, err
}

// leftOut says which files of a tree no workspace has.
func (s *space) leftOut(prefix string) func(string) bool {
	return func(path string) bool {
		if never(path) {
			return true
		}
		rel, is := below(prefix, path)
		return is && s.LeftOut != nil && s.LeftOut(rel)
	}
}

// commit records a tree. It says nothing of the person: the commit is never in their
// repository.
func (s *space) commit(ctx context.Context, g *git, tree, parent, message string) (string, error) {
	args := []string{"commit-tree", tree, "-m", message}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	at := s.Now().UTC().Format(time.RFC3339)
	return g.line(ctx, call{env: []string{
		"GIT_AUTHOR_NAME=rye-mcp", "GIT_AUTHOR_EMAIL=rye-mcp@localhost", "GIT_COMMITTER_NAME=rye-mcp", "GIT_COMMITTER_EMAIL=rye-mcp@localhost",
		"GIT_AUTHOR_DATE=" + at, "GIT_COMMITTER_DATE=" + at,
	}}, args...)
}

// checkOut writes the files of the index, and what git needs in a shell there.
func (s *space) checkOut(ctx context.Context, g *git, commit string) error {
	if err := os.Mkdir(s.tree(), 0o700); err != nil {
		return err
	}
	if _, _, err := g.run(ctx, call{tree: s.tree(), index: s.index()}, "checkout-index", "-a", "-f", "-u"); err != nil {
		return err
	}
	if err := copySmall(s.index(), filepath.Join(s.git(), "index")); err != nil {
		return err
	}
	branch := "refs/heads/" + s.is.Branch()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(s.git(), branch)), 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{branch: commit, "HEAD": "ref: " + branch} {
		if err := os.WriteFile(filepath.Join(s.git(), name), []byte(text+"\n"), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(s.tree(), ".git"), []byte("gitdir: "+s.git()+"\n"), 0o600)
}

// copySmall copies a regular file; where there is none, nothing.
func copySmall(from, to string) error {
	data, err := regular.Read(from, maxRead)
	if isMissing(err) || errors.Is(err, regular.ErrNot) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// linkTree gives a folder the files of another, which are never changed.
func linkTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && rel == "info":
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		err = os.Link(path, filepath.Join(to, rel))
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	})
}

// removeTries is how often a folder is removed in which somebody makes a lock meanwhile, who
// came to it just before it was moved.
const removeTries = 5

// removeAll removes a folder with everything in it, also what may not be written: caches
// of programs make their folders read-only.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	for try := 1; try < removeTries && errors.Is(err, syscall.ENOTEMPTY); try++ {
		err = os.RemoveAll(dir)
	}
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // a folder that is removed next
		}
		return nil
	})
	return os.RemoveAll(dir)
}
