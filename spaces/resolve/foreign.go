package resolve

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/foreign/claude"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/spaces/protect"
)

// This file is the one place that knows of items which other programs keep in a form
// of their own: where they lie, how they are read, and what a signature of theirs is
// for. Elsewhere such an item is an item whose signature is detached.

// openPlaces opens the folders of other programs in which an item of the kind can be.
// One that cannot be opened, or leads out of the project, has no items.
func openPlaces(dir string, of item.Space, kind item.Kind, id string) []space {
	if dir == "" || id != "" && !strings.HasPrefix(id, claude.Prefix) || kind == item.Tool || kind == item.Knowledge && id == "" {
		return nil
	}
	var spaces []space
	for _, p := range claude.Places() {
		if id != "" && fileIn(p, kind, id) == "" {
			continue
		}
		if root := openPlace(dir, of, p.Folder); root != nil {
			spaces = append(spaces, space{kind: kind, name: of, root: root, place: &p, dir: dir})
		}
	}
	return spaces
}

// Folders are those below the directory of a space that hold its items and their
// signatures.
func Folders() []string {
	var folders []string
	for _, kind := range item.Kinds() {
		folders = append(folders, ".ai/"+kind.Dir(), ".ai/"+SignatureFolder(kind))
	}
	for _, p := range claude.Places() {
		folders = append(folders, p.Folder)
	}
	return folders
}

// openPlace opens a folder of another program; nil for none. Those of the user may be
// links to where the user keeps them. Those of a project stay in it, and do not lead to
// what tools may not write: ids would name those files.
func openPlace(dir string, of item.Space, folder string) *os.Root {
	if of == item.User {
		root, err := os.OpenRoot(filepath.Join(dir, filepath.FromSlash(folder)) + string(filepath.Separator) + ".")
		if err != nil {
			return nil
		}
		return root
	}
	whole, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	real, err := filepath.EvalSymlinks(filepath.Join(dir, filepath.FromSlash(folder)))
	if err != nil {
		return nil
	}
	below, is := pathname.Inside(whole, real)
	if !is || protect.ByName(protect.Split(below)) != protect.Writing {
		return nil
	}
	project, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = project.Close() }() // the folder in it stays open
	root, err := OpenFolder(project, filepath.ToSlash(below))
	if err != nil {
		return nil
	}
	return root
}

// fileIn is where an item lies in the folder of a place; empty for one that cannot be
// there. Knowledge of other programs are the files of skills.
func fileIn(p claude.Place, kind item.Kind, id string) string {
	if kind == item.Knowledge {
		skill, file, ok := claude.SplitSkill(id)
		if !ok || p.Form != claude.Skill {
			return ""
		}
		return strings.TrimPrefix(skill, p.Prefix) + "/" + file
	}
	name, _ := p.File(id)
	return name
}

// listSkills lists the folders with a SKILL.md. One that is a link is listed where it
// leads to, when that is a place too.
func (s space) listSkills() []Entry {
	folders, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return nil
	}
	var entries []Entry
	for _, folder := range folders {
		if !folder.IsDir() || Skipped(folder.Name()) {
			continue
		}
		file, _ := s.place.File(s.place.Prefix + folder.Name())
		info, err := s.root.Lstat(file)
		if err != nil {
			continue
		}
		if e, ok := s.listed(s.root.FS(), file, file, fs.FileInfoToDirEntry(info)); ok {
			entries = append(entries, e)
		}
	}
	return entries
}

// isLinked reports whether a folder of another program has a link on the way to a file:
// programs that install skills put links to one place into those of the others.
func (s space) isLinked(name string) bool {
	if s.place == nil {
		return false
	}
	above := ""
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		above = path.Join(above, part)
		if info, err := s.root.Lstat(above); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// Read reads an item that was listed, shadowed or not, and none of the files beside it;
// of one that is too large the beginning, which parses as nothing. Links do not lead out
// of its folder.
func Read(roots Roots, e Entry) ([]byte, error) {
	if e.Space == item.System {
		return fs.ReadFile(roots.System, path.Join(e.Kind.Dir(), e.ID+e.Ext))
	}
	dir := roots.Project
	if e.Space == item.User {
		dir = roots.User
	}
	folder, name, err := folderOf(dir, e)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }() // only read
	file, err := openRegular(folder, filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	return io.ReadAll(io.LimitReader(file, parse.MaxBytes+1))
}

// folderOf opens the folder of an entry's kind, and says where in it the file lies.
func folderOf(dir string, e Entry) (folder *os.Root, name string, err error) {
	if e.Folder == "" {
		ai, err := OpenAI(dir, e.Space)
		if err != nil {
			return nil, "", err
		}
		defer func() { _ = ai.Close() }() // the folder in it stays open
		folder, err := OpenFolder(ai, e.Kind.Dir())
		return folder, e.ID + e.Ext, err
	}
	for _, p := range claude.Places() {
		if name := fileIn(p, e.Kind, e.ID); p.Folder == e.Folder && name != "" {
			if folder := openPlace(dir, e.Space, p.Folder); folder != nil {
				return folder, name, nil
			}
		}
	}
	return nil, "", fs.ErrNotExist
}

// Below is where the file of an entry lies below the directory of its space.
func (e Entry) Below() string {
	for _, p := range claude.Places() {
		if p.Folder == e.Folder {
			return path.Join(p.Folder, fileIn(p, e.Kind, e.ID))
		}
	}
	return path.Join(".ai", e.Kind.Dir(), e.ID+e.Ext)
}

// Rank orders the items of one kind and id in a space; the lowest is found.
func (e Entry) Rank() int {
	if e.Folder == "" {
		return slices.Index(e.Kind.Extensions(), e.Ext)
	}
	return len(e.Kind.Extensions()) + slices.IndexFunc(claude.Places(), func(p claude.Place) bool { return p.Folder == e.Folder })
}

// OfRank sets what the rank of an entry says of it.
func (e *Entry) OfRank(rank int) {
	exts, places := e.Kind.Extensions(), claude.Places()
	switch {
	case rank >= 0 && rank < len(exts):
		e.Ext = exts[rank]
	case rank >= len(exts) && rank < len(exts)+len(places):
		e.Ext, e.Folder = ".md", places[rank-len(exts)].Folder
	}
}

// Directive reads the content of an entry as a directive.
func (e Entry) Directive(content []byte) (*item.DirectiveDoc, error) {
	return (&Found{Entry: e, Content: content}).parseDirective()
}

func (f *Found) parseDirective() (*item.DirectiveDoc, error) {
	if f.Folder == "" {
		return parse.Directive(f.Path, f.Content)
	}
	src := claude.Source{Path: f.Path, ID: f.ID, Content: f.Content}
	if f.Detached != nil {
		src.Folder, src.Files = filepath.Dir(f.Path), f.Detached.beside()
	}
	doc, err := claude.Directive(src)
	if err == nil && f.Detached != nil {
		doc.Permissions.Acknowledged = f.Detached.Acknowledged()
	}
	return doc, err
}

// Outline says where the parts of a directive stand in its file. That of another
// program has none of ours.
func (f *Found) Outline() (*parse.Outline, error) {
	if f.Folder != "" {
		return &parse.Outline{Elements: []parse.Element{{Line: 1}}, Body: 1}, nil
	}
	return parse.OutlineOf(f.Path, f.Content)
}

func (f *Found) parseKnowledge() (*item.KnowledgeDoc, error) {
	if f.Folder == "" {
		return parse.Knowledge(f.Path, f.Content)
	}
	if !utf8.Valid(f.Content) {
		return nil, fmt.Errorf("%s is no text", f.Path)
	}
	return &item.KnowledgeDoc{Name: path.Base(f.ID), Title: path.Base(f.ID), Category: "claude", Body: string(f.Content)}, nil
}

// errNoText says that a file of a skill is nothing that a model can be shown.
var errNoText = errors.New("it is no text")
