package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ApplyRequest says into what a workspace is applied, and by whom.
type ApplyRequest struct {
	// Into is the workspace of the thread that applies; nil: the project.
	Into *thread.Workspace
	// Person says that a person has agreed to what only a person may apply.
	Person bool
}

// Applied is what was put into the project.
type Applied struct {
	thread.Changes
	Merged []string `json:"merged,omitempty" jsonschema:"files that had changed on both sides, in different lines"`
	// Before is when everything was applied, where nothing is left to apply.
	Before  time.Time `json:"applied_before,omitzero" jsonschema:"everything was applied then; nothing has changed since"`
	Removed bool      `json:"workspace_removed,omitempty"`
	Note    string    `json:"note,omitempty"`
}

// Conflict is a file that keeps a workspace from being applied.
type Conflict struct {
	Path string `json:"path"`
	Kind string `json:"kind" jsonschema:"both_modified, both_added, deleted_here, deleted_there, type_changed, in_the_way, person_only, too_large or changed_meanwhile"`
	Here string `json:"here,omitempty" jsonschema:"what became of it in the project"`
	// There is what the thread has done.
	There string `json:"there,omitempty" jsonschema:"what the thread did"`
	Hunk  string `json:"hunk,omitempty" jsonschema:"the first lines that differ: here, before, there"`
	Why   string `json:"why,omitempty"`
}

// The kinds of conflicts.
const (
	kindModified  = "both_modified"
	kindAdded     = "both_added"
	kindGoneHere  = "deleted_here"
	kindGoneThere = "deleted_there"
	kindType      = "type_changed"
	kindInTheWay  = "in_the_way"
	kindPerson    = "person_only"
	kindTooLarge  = "too_large"
	kindMeanwhile = "changed_meanwhile"
)

// ConflictError says why nothing was applied.
type ConflictError struct{ Conflicts []Conflict }

func (e *ConflictError) Error() string {
	if len(e.Conflicts) == 1 {
		return fmt.Sprintf("nothing was applied: %s (%s)", e.Conflicts[0].Path, e.Conflicts[0].Kind)
	}
	return fmt.Sprintf("nothing was applied: %d files are in conflict, %s (%s) first", len(e.Conflicts), e.Conflicts[0].Path, e.Conflicts[0].Kind)
}

// PersonOnly reports whether a person could apply it.
func (e *ConflictError) PersonOnly() bool {
	for _, c := range e.Conflicts {
		if c.Kind != kindPerson {
			return false
		}
	}
	return true
}

// Apply implements [Workspaces].
func (l *Local) Apply(ctx context.Context, w thread.Workspace, r ApplyRequest) (Applied, error) {
	s, err := l.of(w)
	if err != nil {
		return Applied{}, err
	}
	t, err := l.target(r.Into)
	if err != nil {
		return Applied{}, err
	}
	if t.dir == s.tree() || r.Into != nil && r.Into.Name == w.Name {
		return Applied{}, tool.Faultf(tool.CodeUnsupported, "the thread works in the same files as the one that applies, so there is nothing to apply").
			WithHint("Look at the files themselves.")
	}
	free, err := t.lock(ctx)
	if err != nil {
		return Applied{}, err
	}
	defer free()
	if err := t.goOn(); err != nil { // what somebody was killed over
		return Applied{}, err
	}
	now, done, err := s.look(ctx)
	if err != nil {
		return Applied{}, err
	}
	defer done()
	return now.apply(ctx, t, r)
}

// apply decides what is to be written, and writes it.
func (n *state) apply(ctx context.Context, t *target, r ApplyRequest) (Applied, error) {
	applied := Applied{Changes: summed(n.changes)}
	applied.Ignored = n.leftOutByGit()
	if len(n.outside) > 0 {
		applied.Note = fmt.Sprintf("%d changed files of the repository are outside the project, and are not applied", len(n.outside))
	}
	if len(n.changes) == 0 {
		applied.Before = n.AppliedAt
		return applied, nil
	}
	stage := filepath.Join(n.dir, "apply")
	if err := removeAll(stage); err != nil {
		return Applied{}, err
	}
	defer func() { _ = removeAll(stage) }() // copies
	p := &planning{state: n, target: t, stage: stage, person: r.Person}
	if err := p.plan(ctx); err != nil {
		return Applied{}, err
	}
	applied.Merged = few(p.merged)
	base, err := n.commit(ctx, n.git, n.tree, n.Base, "applied")
	if err != nil {
		return Applied{}, err
	}
	if err := t.perform(p.steps, n.space, base); err != nil {
		return Applied{}, err
	}
	if len(n.outside) > 0 || n.holdsMore() {
		return applied, nil
	}
	applied.Removed, err = n.dropUnused()
	return applied, err
}

// target is a folder that changes are applied to.
type target struct {
	*Local
	dir  string
	name string // of its journal and lock
}

// target is the project, or the folder of the project in a workspace.
func (l *Local) target(into *thread.Workspace) (*target, error) {
	if into == nil {
		return &target{Local: l, dir: l.Project, name: "project"}, nil
	}
	s, err := l.of(*into)
	if err != nil {
		return nil, err
	}
	a, err := s.present()
	if err != nil {
		return nil, err
	}
	return &target{Local: l, dir: s.work(a).Root, name: into.Name}, nil
}

// applying begins the names of journals of targets, and of their locks.
const applying = "applying-"

func (t *target) file(ending string) (string, error) {
	base, err := t.base()
	return filepath.Join(base, applying+t.name+ending), err
}

// lock has this process alone change the target.
func (t *target) lock(ctx context.Context) (func(), error) {
	path, err := t.file(".lock")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return lockFile(ctx, path)
}
