package workspace

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/gitrepo"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// DiffRequest selects what is shown of the changes.
type DiffRequest struct {
	Path   string // a file or folder, as the workspace has it; empty: all
	Offset int    // first line of the text, from 1
	Room   int    // bytes of JSON that the answer may take; 0: [DiffRoom]
}

// DiffRoom is how long a page of a diff is where nobody says.
const DiffRoom = 20_000

// maxDiffFiles bounds the files that one answer names.
const maxDiffFiles = 200

// Diff is what has changed in a workspace.
type Diff struct {
	Added    int       `json:"added"`
	Modified int       `json:"modified"`
	Deleted  int       `json:"deleted"`
	Files    []File    `json:"files,omitempty" jsonschema:"on the first page"`
	More     int       `json:"more_files,omitempty" jsonschema:"files that are not named"`
	Text     string    `json:"diff,omitempty"`
	Next     int       `json:"next_offset,omitempty"`
	Baseline string    `json:"baseline,omitempty" jsonschema:"commit of the workspace that it began with"`
	Folder   string    `json:"folder,omitempty" jsonschema:"where the files are"`
	Applied  time.Time `json:"applied_at,omitzero" jsonschema:"what had changed by then was applied"`
	Outside  []string  `json:"outside_project,omitempty" jsonschema:"changed files of the repository that are not in the project, and are never applied"`
	Left     []string  `json:"repositories_left_out,omitempty" jsonschema:"repositories in the workspace, of whose files nothing is shown or applied"`
	Ignored  []string  `json:"ignored_left_out,omitempty" jsonschema:"what git ignores: never applied; folders, which end with /, go with the workspace"`
	Note     string    `json:"note,omitempty"`
}

// File is one that has changed.
type File struct {
	Path    string `json:"path"`
	Change  string `json:"change" jsonschema:"A added, M modified, D deleted"`
	Added   int    `json:"lines_added,omitempty"`
	Removed int    `json:"lines_removed,omitempty"`
	Binary  bool   `json:"binary,omitempty"`
	// Person says why nobody but a person applies it; empty: anybody may.
	Person string `json:"person,omitempty" jsonschema:"why only a person applies it, at the command line"`
}

// Diff implements [Workspaces].
func (l *Local) Diff(ctx context.Context, w thread.Workspace, r DiffRequest) (Diff, error) {
	s, err := l.of(w)
	if err != nil {
		return Diff{}, err
	}
	now, done, err := s.look(ctx)
	if err != nil {
		return Diff{}, err
	}
	defer done()
	return now.diff(ctx, r)
}

func (n *state) diff(ctx context.Context, r DiffRequest) (Diff, error) {
	all := summed(n.changes)
	d := Diff{
		Added: all.Added, Modified: all.Modified, Deleted: all.Deleted, Baseline: n.Workspace.Baseline, Folder: n.work(n.about).Root, Applied: n.AppliedAt, Left: few(n.left), Outside: few(n.outside), Ignored: n.leftOutByGit(),
	}
	if len(n.changes) == 0 {
		d.Note = "nothing has changed"
		if !n.AppliedAt.IsZero() {
			d.Note = "nothing has changed since it was applied"
		}
		return d, nil
	}
	within, err := n.within(r.Path)
	if err != nil {
		return d, err
	}
	room := r.Room
	if room <= 0 {
		room = DiffRoom
	}
	if r.Offset <= 1 {
		if err := n.addFiles(ctx, &d, within, room/2); err != nil {
			return d, err
		}
	}
	text, err := n.git.patch(ctx, n.Base, n.tree, n.Prefix, within)
	if err != nil {
		return d, err
	}
	d.Text, d.Next = page(text, max(1, r.Offset), max(2_000, room-tool.SizeInJSON(strings.Join(slices.Concat(d.Left, d.Ignored), ""))-sizeOf(d.Files)-600))
	switch {
	case d.Next > 0:
		d.Note = "there is more: call again with offset, or with the path of a file"
	case text == "":
		d.Note = "nothing has changed at this path"
	case d.Text == "":
		d.Note = "the offset is past the end: leave it out to begin with the files"
	}
	return d, nil
}

// within is a path that a caller gives, relative to the project; empty for all of it.
func (n *state) within(asked string) (string, error) {
	root := n.work(n.about).Root
	for _, dir := range []string{root, n.Project} {
		if rel, is := pathname.Inside(dir, asked); is && filepath.IsAbs(asked) {
			asked = rel
		}
	}
	clean := filepath.ToSlash(filepath.Clean(asked))
	switch {
	case asked == "" || clean == ".":
		return "", nil
	case strings.ContainsRune(asked, 0) || !filepath.IsLocal(clean):
		return "", tool.Faultf(tool.CodeOutsideProject, "%q is outside the project", asked).WithHint("Give a path relative to the project.")
	}
	return clean, nil
}

// addFiles names the files within a path.
func (n *state) addFiles(ctx context.Context, d *Diff, within string, room int) error {
	counted, err := n.git.counts(ctx, n.Base, n.tree)
	if err != nil {
		return err
	}
	for _, c := range n.changes {
		if within != "" && c.path != within && !strings.HasPrefix(c.path, within+"/") {
			continue
		}
		came := counted[path.Join(n.Prefix, c.path)]
		f := File{Path: shownPath(c.path), Change: c.letter(), Added: came.added, Removed: came.removed, Binary: came.binary}
		if f.Person, err = n.needsPerson(ctx, c); err != nil {
			return err
		}
		if room -= sizeOf([]File{f}); room < 0 || len(d.Files) == maxDiffFiles {
			d.More++
			continue
		}
		d.Files = append(d.Files, f)
	}
	return nil
}

// few are the first of some paths.
func few(paths []string) []string {
	var shown []string
	for _, p := range paths[:min(len(paths), 20)] {
		shown = append(shown, shownPath(p))
	}
	return shown
}

func sizeOf(files []File) int {
	size := 0
	for _, f := range files {
		size += tool.SizeInJSON(f.Path) + tool.SizeInJSON(f.Person) + 80
	}
	return size
}

// shownPath is a path as JSON can hold it, without what a terminal obeys.
func shownPath(path string) string { return gitrepo.Shown(strings.ReplaceAll(path, "\n", "<U+000A>")) }

// patch is what differs between two trees below a folder as text.
func (g *git) patch(ctx context.Context, from, to, prefix, within string) (string, error) {
	args := []string{"diff-tree", "-r", "-p", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/"}
	if prefix != "" {
		args = append(args, "--relative="+prefix+"/")
	}
	args = append(args, from, to)
	if within != "" {
		args = append(args, "--", path.Join(prefix, within))
	}
	out, _, err := g.run(ctx, call{}, args...)
	return string(out), err
}

// page cuts the lines of a text from one on to what has room.
func page(text string, first, room int) (shown string, next int) {
	var b strings.Builder
	at := 0
	for line := range strings.Lines(text) {
		if at++; at < first {
			continue
		}
		if sign.Holds([]byte(line)) {
			continue
		}
		line = gitrepo.Shown(line)
		if room -= tool.SizeInJSON(line); room < 0 && b.Len() > 0 {
			return b.String(), at
		}
		b.WriteString(line)
	}
	return b.String(), 0
}
