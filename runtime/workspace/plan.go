package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/tools/gitrepo"
)

// maxMerge is the largest file that is merged line by line.
const maxMerge = 32 << 20

// planning decides what applying a workspace comes to. It changes nothing but its stage.
type planning struct {
	*state
	target *target
	stage  string
	person bool

	root      *os.Root
	folders   folders
	marks     *protect.Marks
	noModes   bool              // the file system keeps no mode of files
	gone      map[string]bool   // files that the thread has removed
	began     map[string]change // of a copy: what has changed since it began, see [thread.Workspace.Copied]
	steps     []step
	merged    []string
	conflicts []Conflict
}

// step is one file that is written or removed.
type step struct {
	path   string
	source string // file or link with the new content; empty: the file goes
	before mark
	info   fs.FileInfo // as it was seen; nil where there was nothing
	exec   bool
}

// plan decides about every change. With conflicts the error is a *[ConflictError].
func (p *planning) plan(ctx context.Context) (err error) {
	if p.root, err = os.OpenRoot(p.target.dir); err != nil {
		return err
	}
	defer func() { _ = p.root.Close() }() // only read
	p.folders = folders{root: p.root, real: map[string]bool{".": true}}
	p.marks = protect.In(p.target.dir, p.User)
	config, err := regular.Read(filepath.Join(p.space.git(), "config"), maxRead)
	if err != nil {
		return err
	}
	p.noModes = bytes.Contains(config, []byte("filemode = false"))
	if err := p.unpack(ctx, p.tree, "theirs", func(change) bool { return true }); err != nil {
		return err
	}
	if err := p.unpack(ctx, p.Base, "base", func(c change) bool { return c.newMode != modeNone && c.oldMode != modeNone }); err != nil {
		return err
	}
	if err := p.sinceCopied(ctx); err != nil {
		return err
	}
	p.gone = map[string]bool{}
	for _, c := range p.changes {
		if c.newMode == modeNone {
			p.gone[c.path] = true
		}
	}
	for _, c := range p.changes {
		if err := p.decide(ctx, c); err != nil {
			return err
		}
	}
	if len(p.conflicts) > 0 {
		return &ConflictError{p.conflicts}
	}
	// Files go before others come: one may stand where a folder was.
	slices.SortStableFunc(p.steps, func(a, b step) int { return rank(a) - rank(b) })
	return nil
}

// sinceCopied looks what has changed since a copy began: a file of the target that is as
// it was then has what was changed before from the other workspace.
func (p *planning) sinceCopied(ctx context.Context) error {
	if !p.Workspace.Copied || !p.AppliedAt.IsZero() {
		return nil
	}
	all, err := p.git.between(ctx, p.Workspace.Baseline, p.tree)
	p.began = map[string]change{}
	for _, c := range all {
		if rel, is := p.inProject(c.path); is {
			p.began[rel] = c
		}
	}
	return err
}

func rank(s step) int {
	if s.source == "" {
		return 0
	}
	return 1
}

// unpack writes changed files of a tree into the stage.
func (p *planning) unpack(ctx context.Context, tree, name string, wanted func(change) bool) error {
	dir, index := filepath.Join(p.stage, name), filepath.Join(p.stage, name+".index")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var paths []string
	for _, c := range p.changes {
		if wanted(c) && (name == "base" || c.newMode != modeNone) {
			paths = append(paths, path.Join(p.Prefix, c.path))
		}
	}
	if len(paths) == 0 {
		return nil
	}
	if _, _, err := p.git.run(ctx, call{index: index}, "read-tree", tree); err != nil {
		return err
	}
	_, _, err := p.git.run(ctx, call{tree: dir, index: index, stdin: []byte(strings.Join(append(paths, ""), "\x00"))}, "checkout-index", "-z", "--stdin")
	return err
}

func (p *planning) staged(name string, c change) string {
	return filepath.Join(p.stage, name, filepath.FromSlash(path.Join(p.Prefix, c.path)))
}

func (p *planning) conflict(c change, kind, here, why string) {
	p.conflicts = append(p.conflicts, Conflict{Path: shownPath(c.path), Kind: kind, Here: here, There: did[c.letter()], Why: why})
}

var did = map[string]string{"A": "added", "M": "modified", "D": "deleted"}

// decide decides about one change.
func (p *planning) decide(ctx context.Context, c change) error {
	why, err := p.needsPerson(ctx, c)
	if err != nil {
		return err
	}
	if never(c.path) {
		p.conflict(c, kindPerson, "", "state of threads or keys, which is never applied")
		return nil
	}
	info, inTheWay, err := p.here(c)
	if err != nil || inTheWay {
		return err
	}
	if why == "" && p.marks.Of(filepath.Join(p.target.dir, filepath.FromSlash(c.path)), info) != protect.Writing {
		why = "protected"
	}
	if why != "" && !p.person {
		p.conflict(c, kindPerson, "", why)
		return nil
	}
	ours, err := markOf(p.root, c.path, info)
	if err != nil {
		return err
	}
	switch {
	case p.is(ours, c.newMode, c.newHash): // it is there already
	case p.is(ours, c.oldMode, c.oldHash), p.asCopied(c.path, ours):
		p.take(c, ours, info)
	default:
		return p.both(ctx, c, ours, info)
	}
	return nil
}

// here is what stands in the target at the path of a change.
func (p *planning) here(c change) (info fs.FileInfo, inTheWay bool, err error) {
	for at := c.path; ; {
		at = path.Dir(at)
		if at == "." {
			break
		}
		above, err := p.root.Lstat(filepath.FromSlash(at))
		if isMissing(err) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		switch {
		case above.IsDir():
			if !p.person && isRepository(p.root, at) {
				p.conflict(c, kindPerson, "", shownPath(at)+" is a git repository, whose settings run commands")
				return nil, true, nil
			}
		case p.gone[at]: // its file is removed first
		default:
			p.conflict(c, kindInTheWay, "", shownPath(at)+" is no folder")
			return nil, true, nil
		}
	}
	info, err = p.folders.look(c.path)
	if err != nil || info == nil || !info.IsDir() {
		return info, false, err
	}
	if c.newMode != modeNone && p.empties(c.path) {
		return nil, false, nil
	}
	if c.newMode == modeNone {
		p.conflict(c, kindType, "a folder", "")
	} else {
		p.conflict(c, kindInTheWay, "a folder", "")
	}
	return nil, true, nil
}

// isRepository reports whether git would take a folder of any name for a repository.
func isRepository(root *os.Root, dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := root.Lstat(filepath.FromSlash(path.Join(dir, name))); err != nil {
			return false
		}
	}
	return true
}

// empties reports whether the thread has removed every file of a folder.
func (p *planning) empties(dir string) bool {
	err := fs.WalkDir(p.root.FS(), dir, func(at string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !p.gone[at] {
			err = errors.New("it stays")
		}
		return err
	})
	return err == nil
}

// is reports whether a file is that of a mode and hash of git.
func (p *planning) is(m mark, mode, hash string) bool {
	if mode == modeNone || m.kind == kindNone {
		return mode == modeNone && m.kind == kindNone
	}
	if m.kind == kindLink || mode == modeLink {
		return m.kind == kindLink && mode == modeLink && m.hash(len(hash)) == hash
	}
	return m.kind == kindFile && (p.noModes || m.exec == (mode == modeExec)) && m.hash(len(hash)) == hash
}

// asCopied reports whether a file is what the copy began with.
func (p *planning) asCopied(path string, m mark) bool {
	c, changed := p.began[path]
	return changed && p.is(m, c.oldMode, c.oldHash)
}

// take writes a file as the thread has left it.
func (p *planning) take(c change, ours mark, info fs.FileInfo) {
	s := step{path: c.path, before: ours, info: info, exec: c.newMode == modeExec}
	if c.newMode != modeNone {
		s.source = p.staged("theirs", c)
	}
	p.steps = append(p.steps, s)
}

// both decides about a file that has changed on both sides.
func (p *planning) both(ctx context.Context, c change, ours mark, info fs.FileInfo) error {
	switch {
	case ours.kind == kindNone:
		p.conflict(c, kindGoneHere, "deleted", "")
	case c.oldMode == modeNone:
		p.conflict(c, kindAdded, "added", "")
	case c.newMode == modeNone:
		p.conflict(c, kindGoneThere, "modified", "")
	case ours.kind != kindFile || c.newMode == modeLink || c.oldMode == modeLink:
		p.conflict(c, kindType, "modified", "a link cannot be merged")
	case info.Size() > maxMerge:
		p.conflict(c, kindTooLarge, "modified", "")
	default:
		return p.merge(ctx, c, ours, info)
	}
	return nil
}

// merge merges a file of which both sides have changed lines.
func (p *planning) merge(ctx context.Context, c change, ours mark, info fs.FileInfo) error {
	here := filepath.Join(p.stage, "ours")
	data, err := readAll(p.root, c.path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(here, data, 0o600); err != nil {
		return err
	}
	for _, file := range []string{here, p.staged("base", c), p.staged("theirs", c)} {
		if text, err := regular.Read(file, maxRead); err != nil {
			return err
		} else if bytes.IndexByte(text, 0) >= 0 {
			p.conflict(c, kindModified, "modified", "a binary file cannot be merged")
			return nil
		}
	}
	out, code, err := p.git.run(ctx, call{fails: true}, "merge-file", "-p", "--diff3", "-L", "here", "-L", "before", "-L", "there", here, p.staged("base", c), p.staged("theirs", c))
	if err != nil {
		return err
	}
	if code != 0 {
		p.conflict(c, kindModified, "modified", "")
		p.conflicts[len(p.conflicts)-1].Hunk = hunk(string(out))
		return nil
	}
	merged := filepath.Join(p.stage, "merged-"+strconv.Itoa(len(p.steps)))
	if err := os.WriteFile(merged, out, 0o600); err != nil {
		return err
	}
	exec := ours.exec
	if c.newMode != c.oldMode {
		exec = c.newMode == modeExec
	}
	p.steps = append(p.steps, step{path: c.path, source: merged, before: ours, info: info, exec: exec})
	p.merged = append(p.merged, c.path)
	return nil
}

// maxHunk bounds what is shown of a conflict.
const maxHunk = 1_500

// hunk is the first conflict in a merged text.
func hunk(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if b.Len() == 0 && !strings.HasPrefix(line, "<<<<<<< ") {
			continue
		}
		if b.WriteString(gitrepo.Shown(line)); b.Len() > maxHunk || strings.HasPrefix(line, ">>>>>>> ") {
			break
		}
	}
	return item.Clip(b.String(), maxHunk)
}
