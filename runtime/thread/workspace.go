package thread

import (
	"crypto/rand"
	"strings"
)

// Workspace is the working tree of its own that a thread works in, and what it continues
// or starts with it.
type Workspace struct {
	Type string `json:"type"` // one of [WorkspaceTypes]
	Name string `json:"name"` // see [NewWorkspaceName]
	Of   ID     `json:"of"`   // the thread that it was made for; others work in it too
	// From is the name of the workspace whose files it began with; empty: the project.
	From string `json:"from,omitempty"`
	// Copied says that what had changed in From counts as changed here too: it is applied
	// with this one, to where that one would have been.
	Copied bool `json:"copied,omitempty"`
	// Baseline is the commit that it began with; empty before it was made.
	Baseline string `json:"baseline,omitempty"`
}

// WorkspaceWorktree is a working tree of git.
const WorkspaceWorktree = "worktree"

// WorkspaceTypes are the types of workspaces.
func WorkspaceTypes() []string { return []string{WorkspaceWorktree} }

const workspaceMark = "w"

// NewWorkspaceName makes a name that no other workspace has.
func NewWorkspaceName() string { return workspaceMark + strings.ToLower(rand.Text()) }

// IsWorkspaceName reports whether a text has the form of a name of [NewWorkspaceName].
func IsWorkspaceName(text string) bool {
	rest, ours := strings.CutPrefix(text, workspaceMark)
	return ours && len(rest) == 26 && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// Changes are what has changed in a workspace since it began, or since it was last
// applied.
type Changes struct {
	Added    int `json:"added"`
	Modified int `json:"modified"`
	Deleted  int `json:"deleted"`
	// Files are the first ones, each with A, M or D before its path.
	Files []string `json:"files,omitempty" jsonschema:"A added, M modified, D deleted"`
}

// Count is how many files have changed.
func (c *Changes) Count() int {
	if c == nil {
		return 0
	}
	return c.Added + c.Modified + c.Deleted
}

// Copy is a workspace for a thread that begins with the files of this one, and is applied
// to the workspace into, or where that is nil to the project; nil for nil. Where this one
// is into, what has changed in it is there already.
func (w *Workspace) Copy(id ID, into *Workspace) *Workspace {
	if w == nil {
		return nil
	}
	return &Workspace{
		Type: w.Type, Name: NewWorkspaceName(), Of: id, From: w.Name, Copied: into == nil || into.Name != w.Name,
	}
}

// OwnWorkspace reports whether the thread, or one that it continues, has its workspace
// for itself, and does not work in that of its parent.
func (m Meta) OwnWorkspace() bool {
	return m.Workspace != nil && (m.Workspace.Of == m.ThreadID || m.Workspace.Of == m.ChainRootID)
}
