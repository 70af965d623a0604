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
	// FromOf is the thread that From was made for.
	FromOf ID `json:"from_of,omitempty"`
	// Copied says that what had changed in From counts as changed here too: it is applied
	// with this one, to where that one would have been.
	Copied bool `json:"copied,omitempty"`
	// Baseline is the commit that it began with; empty before it was made.
	Baseline string `json:"baseline,omitempty"`
	// Bundle names the artifact in which Baseline travels to other machines, by the SHA-256 of
	// its content, and BundleOf the thread that has it, where that is not Of. Empty: it was
	// made where the thread runs.
	Bundle   string `json:"bundle,omitempty"`
	BundleOf ID     `json:"bundle_of,omitempty"`
	// Needs are the commits that a checkout of the project must have for what travels, with a
	// space between two.
	Needs string `json:"needs,omitempty"`
	// Prefix is the folder of the project in Baseline, with slashes, where that travels.
	Prefix string `json:"prefix,omitempty"`
	// Base is the commit that changes are counted from at the beginning, where it travels.
	Base string `json:"base,omitempty"`
	// Result is the commit of what the thread has left, and ResultBase what its changes are
	// counted from. ResultBundle names the artifact in which it travels, ResultOf the thread
	// that has it. Empty: nothing has changed, or nobody could look.
	Result       string `json:"result,omitempty"`
	ResultBase   string `json:"result_base,omitempty"`
	ResultBundle string `json:"result_bundle,omitempty"`
	ResultOf     ID     `json:"result_of,omitempty"`
	// At is the machine that alone has the files as they are, since somebody works in them or
	// what they are could not be sent, and AtName what people call it. Empty: what travels is all.
	At     string `json:"at,omitempty"`
	AtName string `json:"at_name,omitempty"`
	// Applied is the Result that was applied to the project.
	Applied string `json:"applied,omitempty"`
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
	// Branch is the one of git that they lie on, in the workspace's own repository.
	Branch string `json:"branch,omitempty"`
	// Files are the first ones, each with A, M or D before its path.
	Files []string `json:"files,omitempty" jsonschema:"A added, M modified, D deleted"`
	// Ignored are the first files and folders that were written where git ignores them: they
	// are no changes, and are never applied. A folder that git ignores as a whole ends with /.
	Ignored []string `json:"ignored_left_out,omitempty" jsonschema:"written where git ignores it, and never applied; folders end with /"`
}

// IgnoredWarning says what becomes of what was written where git ignores it; empty: nothing
// was.
func (c *Changes) IgnoredWarning() string {
	if c == nil || len(c.Ignored) == 0 {
		return ""
	}
	return "git ignores what was written to " + strings.Join(c.Ignored, ", ") + ": it is no change, and is not applied. " +
		"Files stay in the workspace, folders (/) go with it"
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
		Type: w.Type, Name: NewWorkspaceName(), Of: id, From: w.Name, FromOf: w.Of, Copied: into == nil || into.Name != w.Name,
	}
}

// Again is a new workspace for the thread of this one, all of which was applied.
func (w *Workspace) Again() *Workspace {
	return &Workspace{Type: w.Type, Name: NewWorkspaceName(), Of: w.Of}
}

// OwnWorkspace reports whether the thread, or one that it continues, has its workspace
// for itself, and does not work in that of its parent.
func (m Meta) OwnWorkspace() bool {
	return m.Workspace != nil && (m.Workspace.Of == m.ThreadID || m.Workspace.Of == m.ChainRootID)
}

// Branch is the branch of git that the files of a workspace are checked out on, in a
// repository of its own: the thread's id below rye/, without what no ref of git may have.
func (w *Workspace) Branch() string {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/_.-", r)) {
			return r
		}
		return '-'
	}, string(w.Of))
	name = strings.NewReplacer("/.", "/-", "..", "--", ".lock/", "-lock/").Replace("/" + name + "/")
	return "rye" + strings.TrimSuffix(name, "/")
}

// BundleSuffix ends the names of artifacts that a workspace travels in. No model is told of
// them, and no recording has them.
const BundleSuffix = ".gitb"
