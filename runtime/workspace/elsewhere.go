package workspace

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/gitrepo"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ElsewhereError says that another machine alone has the files of a workspace as they are.
type ElsewhereError struct{ Workspace thread.Workspace }

func (e *ElsewhereError) Error() string {
	if e.Workspace.At == "" {
		return fmt.Sprintf("the workspace of thread %s has not come along to this store: it is where the thread ran before", e.Workspace.Of)
	}
	return fmt.Sprintf("the workspace of thread %s is on %s alone", e.Workspace.Of, cmp.Or(e.Workspace.AtName, "another machine"))
}

// LacksError says that the checkout of the project on this machine lacks a commit that a
// workspace builds upon.
type LacksError struct{ Commit, Project string }

func (e *LacksError) Error() string {
	return fmt.Sprintf("the checkout of the project on this machine lacks commit %.12s, which the thread's workspace builds upon", e.Commit)
}

// travels reports whether other machines have threads of the project, too.
func (l *Local) travels() bool { return l.Bundles != nil }

// elsewhere refuses a workspace that this machine does not have as it is.
func (s *space) elsewhere() error {
	w := s.is
	apart := w.At != "" && w.At != s.Machine
	if w.At == "" && w.Baseline != "" && w.Bundle+w.Result == "" { // it was made before others shared the threads
		_, err := s.read()
		if err != nil && !isMissing(err) {
			return err
		}
		apart = err != nil
	}
	if !s.travels() || !apart {
		return nil
	}
	why := &ElsewhereError{w}
	if w.At == "" {
		return tool.Faultf(tool.CodeUnsupported, "%w", why).With("workspace_of", w.Of).WithHint("Start the thread anew; it begins with the project's files.")
	}
	return tool.Faultf(tool.CodeConflict, "%w", why).With("workspace_of", w.Of).
		WithHint("A worker there takes threads that work in it. wait_threads waits for them; their end sends what they have left.").
		WithTry("rye-mcp worker --project DIR, where %s was", cmp.Or(w.AtName, "the other machine"))
}

// Check implements [Workspaces].
func (l *Local) Check(ctx context.Context, w thread.Workspace) error {
	if w.Name != "" && l.travels() {
		s, err := l.of(w)
		if err != nil {
			return err
		}
		if err := s.elsewhere(); err != nil || w.At != "" { // it is here
			return err
		}
	}
	if _, err := gitrepo.Program(l.Program, l.environ()); err != nil {
		return withoutWorkspace(err)
	}
	repo, err := gitrepo.Find(l.Project)
	if err != nil {
		return withoutWorkspace(err)
	}
	if strings.ContainsAny(repo.Common, "\n") {
		return withoutWorkspace(gitrepo.Unreadable("its path has a line break"))
	}
	if w.Needs == "" || !l.travels() {
		return nil
	}
	s, err := l.of(w)
	if err != nil {
		return err
	}
	return s.hasNeeded(ctx, repo)
}

// hasNeeded refuses a workspace that builds upon commits which the checkout lacks. Files that
// are here need none.
func (s *space) hasNeeded(ctx context.Context, repo *gitrepo.Repository) error {
	if a, err := s.present(); err == nil && a.Result == s.is.Result {
		return nil
	}
	g, err := s.openShadow(repo)
	if err != nil {
		return err
	}
	defer g.close()
	return s.needs(ctx, g, strings.Fields(s.is.Needs))
}

// needs refuses what builds upon commits that are not here.
func (s *space) needs(ctx context.Context, g *git, commits []string) error {
	for _, id := range commits {
		if !isCommit(id) {
			return altered(errBundle)
		}
	}
	lacks, err := g.lacks(ctx, commits)
	if err != nil || lacks == "" {
		return err
	}
	return tool.Faultf(tool.CodeUnsupported, "%w", &LacksError{lacks, s.Project}).
		WithHint("Tell the person: git fetch in the checkout %s, then resume the thread.", s.Project).WithTry("git fetch in %s", s.Project)
}
