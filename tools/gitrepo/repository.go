package gitrepo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Repository is one as a folder in its working tree sees it.
type Repository struct {
	Top     string // of the working tree
	Prefix  string // of the folder in it, with slashes; empty for all of it
	Private string // what this working tree has alone: HEAD, index
	Common  string // refs, objects, config
	// Lent is a folder made by [Repository.Lend] with more of its objects; empty: none.
	Lent string
}

// maxUp bounds the search for a repository above a folder.
const maxUp = 64

// Find looks for the repository of a project, in it or above. Errors are
// *[tool.Fault]s: of a project that is no repository CodeNotFound, of one that is
// not as git makes it CodeUnsupported.
func Find(project string) (*Repository, error) {
	if !filepath.IsAbs(project) {
		return nil, tool.Faultf(tool.CodeNoProject, "no project is known for this call").WithHint("Name the project with project_path.")
	}
	real, err := filepath.EvalSymlinks(project)
	if err != nil {
		return nil, tool.Faultf(tool.CodeNoProject, "the project cannot be opened: %w", err)
	}
	top := real
	for range maxUp {
		info, err := os.Lstat(filepath.Join(top, ".git"))
		if err == nil {
			return open(real, top, info)
		}
		if top == filepath.Dir(top) {
			break
		}
		top = filepath.Dir(top)
	}
	if isBare(real) {
		return nil, Unreadable("it is a bare one, which has no files")
	}
	return nil, tool.Faultf(tool.CodeNotFound, "the project is no git repository").WithHint("Look at its files with rye/file-system/ls.")
}

// isBare reports whether a folder is a repository itself.
func isBare(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// open reads where the parts of a repository lie.
func open(project, top string, info fs.FileInfo) (*Repository, error) {
	r := &Repository{Top: top}
	if rel, err := filepath.Rel(top, project); err == nil && rel != "." {
		r.Prefix = filepath.ToSlash(rel)
	}
	switch {
	case info.IsDir():
		r.Private = filepath.Join(top, ".git")
		r.Common = r.Private
	case info.Mode().IsRegular():
		var err error
		if r.Private, r.Common, err = trust.Linked(top); err != nil {
			return nil, Unreadable("its .git leads to a repository that does not know this folder as its worktree")
		}
	default:
		return nil, Unreadable("its .git is a link")
	}
	return r, nil
}

// Unreadable refuses a repository that is not as git makes it.
func Unreadable(why string) error {
	return tool.Faultf(tool.CodeUnsupported, "the repository of the project cannot be read: %s", why).
		WithHint("Tell the person. The files themselves can be read with rye/file-system/read.")
}

// Shadow makes a git folder with nothing in it that runs: the configuration is ours,
// and refs, objects and index are links to those of the repository. The caller
// removes it. It lies in scratch, see [Temporary].
func (r *Repository) Shadow(scratch string) (dir string, err error) {
	if dir, err = Temporary(scratch); err != nil {
		return "", err
	}
	if err := r.shadowIn(dir); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// shadowIn is Shadow in an empty folder.
func (r *Repository) shadowIn(dir string) error {
	head, err := smallFile(filepath.Join(r.Private, "HEAD"))
	if err != nil || !headForm().Match(head) {
		return Unreadable("it has no valid HEAD")
	}
	if err := os.WriteFile(filepath.Join(dir, "HEAD"), head, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(r.Config()), 0o600); err != nil {
		return err
	}
	for _, name := range []string{"objects", "objects/info", "info"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	if err := r.link(dir); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "refs")); err != nil {
		return Unreadable("it has no folder of refs")
	}
	return nil
}

// headForm is what git accepts in HEAD.
var headForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(ref: refs/[^\x00-\x20\x7f]+|[0-9a-f]{40}([0-9a-f]{24})?)\n?$`)
})

// part is a file or folder of a repository.
type part struct{ from, name string }

// link links the parts of a repository into a folder.
func (r *Repository) link(dir string) error {
	parts := []part{
		{r.Common, "refs"}, {r.Common, "packed-refs"}, {r.Common, "reftable"}, {r.Common, "shallow"}, {r.Private, "index"},
		{r.Common, "info/exclude"}, {r.Private, "info/sparse-checkout"},
	}
	if shared, err := filepath.Glob(filepath.Join(r.Private, "sharedindex.*")); err == nil {
		for _, path := range shared {
			parts = append(parts, part{r.Private, filepath.Base(path)})
		}
	}
	objects, err := r.objects()
	if err != nil {
		return err
	}
	if r.Lent != "" { // a workspace, whose git folder is ours
		parts = append(parts, part{r.Private, "info/attributes"})
		if err := os.WriteFile(filepath.Join(dir, "objects", "info", "alternates"), []byte(r.Lent+"\n"), 0o600); err != nil {
			return err
		}
	}
	return linkAll(dir, append(parts, objects...))
}

// objects are the folders that objects lie in.
func (r *Repository) objects() ([]part, error) {
	objects, err := os.ReadDir(filepath.Join(r.Common, "objects"))
	if info, lerr := os.Lstat(filepath.Join(r.Common, "objects")); err != nil || lerr != nil || !info.IsDir() {
		return nil, Unreadable("it has no folder of objects")
	}
	var parts []part
	for _, o := range objects {
		if name := o.Name(); name == "pack" || fanout(name) {
			parts = append(parts, part{r.Common, "objects/" + name})
		}
	}
	return parts, nil
}

// linkAll links parts into a folder. A part that is a link itself could lead to
// another repository of the person, and is left out.
func linkAll(dir string, parts []part) error {
	for _, p := range parts {
		from := filepath.Join(p.from, filepath.FromSlash(p.name))
		info, err := os.Lstat(from)
		if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			continue
		}
		if err := os.Symlink(from, filepath.Join(dir, filepath.FromSlash(p.name))); err != nil {
			return err
		}
	}
	return nil
}

// Lend makes a folder of objects for another repository to borrow: links to those
// that the repository has now. Objects that it borrows itself are not among them.
// It returns the folder of objects in dir.
func (r *Repository) Lend(dir string) (string, error) {
	lent := filepath.Join(dir, "objects")
	if err := os.MkdirAll(lent, 0o700); err != nil {
		return "", err
	}
	parts, err := r.objects()
	if err != nil {
		return "", err
	}
	return lent, linkAll(dir, parts)
}

// fanout reports whether a folder of objects is named after their first byte.
func fanout(name string) bool {
	return len(name) == 2 && strings.Trim(name, "0123456789abcdef") == ""
}

// Borrows reports whether objects of the repository lie in another one, which is
// not read.
func (r *Repository) Borrows() bool {
	_, err := os.Lstat(filepath.Join(r.Common, "objects", "info", "alternates"))
	return err == nil
}

// maxSmall bounds the files of a repository that are read here.
const maxSmall = 1 << 20

// smallFile reads a regular file.
func smallFile(path string) ([]byte, error) {
	return regular.Read(path, maxSmall)
}
