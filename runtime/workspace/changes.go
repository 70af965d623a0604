package workspace

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// maxNamed bounds the files that the outcome of a thread names.
const maxNamed = 50

// Modes of git.
const (
	modeFile = "100644"
	modeExec = "100755"
	modeLink = "120000"
	modeNone = "000000"
)

// change is one file that differs between two trees. Hashes are those of git; none: all
// zeros.
type change struct {
	path             string
	oldMode, newMode string
	oldHash, newHash string
}

func (c change) letter() string {
	switch {
	case c.oldMode == modeNone:
		return "A"
	case c.newMode == modeNone:
		return "D"
	}
	return "M"
}

// state is a workspace as it is at a moment.
type state struct {
	about
	*space
	git     *git
	tree    string   // of its files
	changes []change // of the project's files, by paths relative to it
	outside []string // other files of the tree that have changed
	left    []string // repositories in it, whose files are not looked at
	ignored []string // files that git ignores
	built   []string // folders that it ignores as a whole, as what programs make
}

// look looks what has changed in a workspace. Done lets others look; the caller calls it.
func (s *space) look(ctx context.Context) (now state, done func(), err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return state{}, nil, err
	}
	now.space = s
	done = func() {
		if now.git != nil {
			now.git.close()
		}
		unlock()
	}
	if err := now.read(ctx); err != nil {
		done()
		return state{}, nil, err
	}
	return now, done, nil
}

func (n *state) read(ctx context.Context) (err error) {
	if n.about, err = n.present(); err != nil {
		return err
	}
	if n.git, err = n.openGit(); err != nil {
		return err
	}
	listed, err := n.git.list(ctx, n.space)
	if err != nil {
		return err
	}
	var f files
	if n.tree, f, err = n.git.snapshot(ctx, n.space.tree(), n.index(), listed, n.leftOut(n.Prefix)); err != nil {
		return err
	}
	n.left = f.left
	if n.ignored, n.built, err = n.git.ignored(ctx, n.space, n.leftOut(n.Prefix)); err != nil {
		return err
	}
	all, err := n.git.between(ctx, n.Base, n.tree)
	for _, c := range all {
		rel, is := n.inProject(c.path)
		if !is {
			n.outside = append(n.outside, c.path)
			continue
		}
		c.path = rel
		n.changes = append(n.changes, c)
	}
	return err
}

// inProject is a path of the tree as one of the project.
func (a about) inProject(path string) (rel string, is bool) { return below(a.Prefix, path) }

// below is a path relative to a folder, which is empty for all.
func below(folder, path string) (rel string, is bool) {
	if folder == "" {
		return path, true
	}
	return strings.CutPrefix(path, folder+"/")
}

// clean reports whether there is nothing in the workspace to apply, or to lose.
func (n *state) clean() bool { return len(n.changes) == 0 && len(n.outside) == 0 && !n.holdsMore() }

// holdsMore reports whether there are files that are no changes, and would be lost with the
// workspace. Files in a folder that git ignores as a whole (dependencies, what was built)
// are made again, and keep no workspace.
func (n *state) holdsMore() bool { return len(n.left)+len(n.ignored) > 0 }

// leftOutByGit are the first of what git ignores.
func (n *state) leftOutByGit() []string { return few(slices.Concat(n.ignored, n.built)) }

// ignored names what there is in a workspace that git ignores: files, and folders that it
// ignores as a whole.
func (g *git) ignored(ctx context.Context, s *space, leftOut func(string) bool) (files, folders []string, err error) {
	out, _, err := g.run(ctx, call{tree: s.tree(), index: s.index()}, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		return nil, nil, err
	}
	all := strings.Split(string(bytes.TrimSuffix(out, []byte{0})), "\x00")
	slices.Sort(all)
	for i, path := range all {
		name, isFolder := strings.CutSuffix(path, "/")
		switch {
		case name == "" || leftOut(name):
		case !isFolder:
			files = append(files, path)
		case i+1 == len(all) || !strings.HasPrefix(all[i+1], path): // else its files are named, each for itself
			folders = append(folders, path)
		}
	}
	return files, folders, nil
}

// list names the files that there were in a workspace, and those that git does not ignore.
func (g *git) list(ctx context.Context, s *space) ([]byte, error) {
	if err := copySmall(g.exclude(s), g.dir+"/info/exclude"); err != nil {
		return nil, err
	}
	listed, _, err := g.run(ctx, call{tree: s.tree(), index: s.index()}, listFiles...)
	return listed, err
}

func (g *git) exclude(s *space) string { return s.git() + "/info/exclude" }

// between lists what differs between two trees.
func (g *git) between(ctx context.Context, from, to string) ([]change, error) {
	out, _, err := g.run(ctx, call{}, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to)
	if err != nil {
		return nil, err
	}
	var all []change
	fields := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		parts := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(parts) != 5 {
			return nil, fmt.Errorf("git diff-tree printed %.80q", fields[i])
		}
		all = append(all, change{path: fields[i+1], oldMode: parts[0], newMode: parts[1], oldHash: parts[2], newHash: parts[3]})
	}
	return all, nil
}

// Changes implements [Workspaces].
func (l *Local) Changes(ctx context.Context, w thread.Workspace) (thread.Changes, error) {
	s, err := l.of(w)
	if err != nil {
		return thread.Changes{}, err
	}
	now, done, err := s.look(ctx)
	if err != nil {
		return thread.Changes{}, err
	}
	defer done()
	all := summed(now.changes)
	all.Ignored = now.leftOutByGit()
	if len(now.changes) > 0 {
		all.Branch = now.Workspace.Branch()
	}
	return all, nil
}

// summed counts changes and names the first ones.
func summed(all []change) thread.Changes {
	var c thread.Changes
	for _, one := range all {
		switch one.letter() {
		case "A":
			c.Added++
		case "D":
			c.Deleted++
		default:
			c.Modified++
		}
		if len(c.Files) < maxNamed {
			c.Files = append(c.Files, one.letter()+" "+shownPath(one.path))
		}
	}
	return c
}

// lines are how many lines of a file came and went.
type lines struct {
	added, removed int
	binary         bool
}

// counts tells of each changed file how many lines came and went.
func (g *git) counts(ctx context.Context, from, to string) (map[string]lines, error) {
	out, _, err := g.run(ctx, call{}, "diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", from, to)
	if err != nil {
		return nil, err
	}
	counted := map[string]lines{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		parts := strings.SplitN(entry, "\t", 3)
		if len(parts) != 3 {
			continue
		}
		added, errA := strconv.Atoi(parts[0])
		removed, errR := strconv.Atoi(parts[1])
		counted[parts[2]] = lines{added: added, removed: removed, binary: errA != nil || errR != nil}
	}
	return counted, nil
}
