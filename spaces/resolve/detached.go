package resolve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/foreign/claude"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// Detached is the signature of an item of another program. A line in the file itself
// would break it for that program, so it stands in a document of its own below
// .ai/signatures: a list of the item's files, in the form of sha256sum, which is signed
// like any file of ours.
type Detached struct {
	Path    string // of the document
	ID      string // of the item that it is for
	Content []byte // of the document; nil when there is none
	Files   []File // what has to stand in it: all files of the item, sorted
	// Part says that Files is one file of many.
	Part bool
	// Problem says why the item cannot be signed; empty when it can.
	Problem string
}

// File is a file of an item.
type File struct {
	Name string // below the folder of the item
	Hash string // SHA-256, hex
}

// Extension is that of the documents of detached signatures.
const Extension = ".sig"

// SignatureFolder is where detached signatures of a kind lie below .ai.
func SignatureFolder(kind item.Kind) string { return "signatures/" + kind.Dir() }

// Bounds of a skill that can be signed: it is hashed each time it is used.
const (
	maxSkillFiles = 512
	maxSkillBytes = 32 << 20
)

// acknowledged begins the line of a document by which a person accepts a risk.
const acknowledged = "acknowledge "

// Document is what is signed: the files of the item, and the risk tiers that its
// signer accepts.
func (d *Detached) Document(accepted ...string) []byte {
	var b strings.Builder
	for _, tier := range accepted {
		b.WriteString(acknowledged + tier + "\n")
	}
	b.WriteString(list(d.Files))
	return []byte(b.String())
}

func list(files []File) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%s  %s\n", f.Hash, f.Name)
	}
	return b.String()
}

// Differs says how the files are not what a document without its signature lists;
// empty when they are.
func (d *Detached) Differs(document []byte) string {
	listed := map[string]string{}
	for row := range strings.Lines(string(document)) {
		if hash, name, ok := strings.Cut(strings.TrimRight(row, "\r\n"), "  "); ok {
			listed[name] = hash
		}
	}
	for _, f := range d.Files {
		switch hash, there := listed[f.Name]; {
		case !there:
			return fmt.Sprintf("its file %s is not among those that were signed", item.Shown(f.Name))
		case hash != f.Hash:
			return fmt.Sprintf("its file %s was changed after it was signed", item.Shown(f.Name))
		}
		delete(listed, f.Name)
	}
	if len(listed) > 0 && !d.Part {
		return "a file that was signed with it is gone"
	}
	return ""
}

// Acknowledged are the risks that the document accepts.
func (d *Detached) Acknowledged() []item.Acknowledgement {
	var all []item.Acknowledgement
	for row := range strings.Lines(string(d.Content)) {
		if tier, ok := strings.CutPrefix(strings.TrimSpace(row), acknowledged); ok {
			all = append(all, item.Acknowledgement{Risk: tier, Reason: "accepted by whoever signed it"})
		}
	}
	return all
}

// beside are the names of the files that a skill has besides its own.
func (d *Detached) beside() []string {
	var names []string
	for _, f := range d.Files {
		if len(d.Files) > 1 && f.Name != claude.SkillFile {
			names = append(names, f.Name)
		}
	}
	return names
}

// detach reads what the signature of a found item is about.
func (s space) detach(found *Found) error {
	d := &Detached{ID: found.ID}
	found.Detached = d
	name := s.file(found.ID, found.Ext)
	switch {
	case s.kind == item.Knowledge:
		if !utf8.Valid(found.Content) {
			return s.unreadable(found.ID, found.Ext, errNoText)
		}
		skill, file, _ := claude.SplitSkill(found.ID)
		d.ID, d.Part, d.Files = skill, true, []File{{file, found.Hash}}
	case s.place.Form == claude.Skill:
		d.Files, d.Problem = s.skillFiles(path.Dir(name))
		found.Hash = hashOf([]byte(list(d.Files) + d.Problem))
	default:
		d.Files = []File{{path.Base(name), found.Hash}}
	}
	d.Path = filepath.Join(s.dir, ".ai", filepath.FromSlash(SignatureFolder(item.Directive)), filepath.FromSlash(d.ID+Extension))
	d.Content = readSignature(s.dir, s.name, d.ID)
	return nil
}

// readSignature reads the document of an item; nil when there is none that could be
// read.
func readSignature(dir string, of item.Space, id string) []byte {
	ai, err := OpenAI(dir, of)
	if err != nil {
		return nil
	}
	defer func() { _ = ai.Close() }() // only read
	folder, err := OpenFolder(ai, SignatureFolder(item.Directive))
	if err != nil {
		return nil
	}
	defer func() { _ = folder.Close() }() // only read
	content, err := Content(folder, filepath.FromSlash(id+Extension))
	if err != nil {
		return nil
	}
	return content
}

// skillFiles hashes the files of a skill. Files that interpreters and tools of authors
// leave behind are no part of it.
func (s space) skillFiles(folder string) (files []File, problem string) {
	total, tooMuch := int64(0), fmt.Sprintf("it has more than %d files or %d MiB", maxSkillFiles, maxSkillBytes>>20)
	visit := func(name string, d fs.DirEntry, err error) error {
		below := strings.TrimPrefix(name, folder+"/")
		switch {
		case err != nil:
			problem = "its file " + item.Shown(below) + " cannot be read"
		case d.IsDir() && leftBehind(d.Name()):
			return fs.SkipDir
		case d.IsDir() || leftBehind(d.Name()):
			return nil
		case len(files) == maxSkillFiles:
			problem = tooMuch
		case !d.Type().IsRegular() || strings.ContainsAny(below, "\r\n"):
			problem = "its file " + item.Shown(below) + " is a link, or something else that is not signed"
		}
		if problem != "" {
			return fs.SkipAll
		}
		hash, size, err := s.hashFile(name, maxSkillBytes-total)
		if err != nil {
			problem = "its file " + item.Shown(below) + " cannot be read"
			return fs.SkipAll
		}
		if total += size; total > maxSkillBytes {
			problem = tooMuch
			return fs.SkipAll
		}
		files = append(files, File{below, hash})
		return nil
	}
	_ = fs.WalkDir(s.root.FS(), folder, visit) // the visitor returns no error
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, problem
}

// leftBehind names files and folders that are no part of a skill.
func leftBehind(name string) bool {
	switch name {
	case ".git", "node_modules", "__pycache__", ".venv", ".DS_Store":
		return true
	}
	return false
}

// hashFile hashes a regular file; the read stops behind most bytes.
func (s space) hashFile(name string, most int64) (hash string, size int64, err error) {
	file, _, err := regular.FollowIn(s.root, filepath.FromSlash(name))
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = file.Close() }() // only read
	sum := sha256.New()
	size, err = io.Copy(sum, io.LimitReader(file, most+1))
	return hex.EncodeToString(sum.Sum(nil)), size, err
}
