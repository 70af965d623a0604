package git

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// repository is one as a project sees it.
type repository struct {
	top     string // of the worktree
	prefix  string // of the project in it, with slashes; empty for all of it
	private string // what this worktree has alone: HEAD, index
	common  string // refs, objects, config
}

// maxUp bounds the search for a repository above the project.
const maxUp = 64

// find looks for the repository of a project, in it or above.
func find(project string) (*repository, error) {
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
	return nil, tool.Faultf(tool.CodeNotFound, "the project is no git repository").WithHint("Look at its files with rye/file-system/ls.")
}

// open reads where the parts of a repository lie.
func open(project, top string, info fs.FileInfo) (*repository, error) {
	r := &repository{top: top}
	if rel, err := filepath.Rel(top, project); err == nil && rel != "." {
		r.prefix = filepath.ToSlash(rel)
	}
	switch {
	case info.IsDir():
		r.private = filepath.Join(top, ".git")
		r.common = r.private
	case info.Mode().IsRegular():
		var err error
		if r.private, r.common, err = trust.Linked(top); err != nil {
			return nil, elsewhere("its .git leads to a repository that does not know this folder as its worktree")
		}
	default:
		return nil, elsewhere("its .git is a link")
	}
	return r, nil
}

func elsewhere(why string) error {
	return tool.Faultf(tool.CodeUnsupported, "the repository of the project cannot be read: %s", why).
		WithHint("Tell the person. The files themselves can be read with rye/file-system/read.")
}

// shadow makes a git folder with nothing in it that runs. The caller removes it.
func (r *repository) shadow(config string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "rye-git-"); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	head, err := smallFile(filepath.Join(r.private, "HEAD"))
	if err != nil || !headForm().Match(head) {
		return "", elsewhere("it has no valid HEAD")
	}
	if err := os.WriteFile(filepath.Join(dir, "HEAD"), head, 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		return "", err
	}
	for _, name := range []string{"objects", "objects/info", "info"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return "", err
		}
	}
	if err := r.link(dir); err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "refs")); err != nil {
		return "", elsewhere("it has no folder of refs")
	}
	return dir, nil
}

// headForm is what git accepts in HEAD.
var headForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(ref: refs/[^\x00-\x20\x7f]+|[0-9a-f]{40}([0-9a-f]{24})?)\n?$`)
})

// link links the parts of a repository into a folder. A part that is a link itself
// could lead to another repository of the person, and is left out.
func (r *repository) link(dir string) error {
	parts := []struct{ from, name string }{
		{r.common, "refs"}, {r.common, "packed-refs"}, {r.common, "reftable"}, {r.common, "shallow"}, {r.private, "index"},
		{r.common, "info/exclude"}, {r.private, "info/sparse-checkout"},
	}
	if shared, err := filepath.Glob(filepath.Join(r.private, "sharedindex.*")); err == nil {
		for _, path := range shared {
			parts = append(parts, struct{ from, name string }{r.private, filepath.Base(path)})
		}
	}
	objects, err := os.ReadDir(filepath.Join(r.common, "objects"))
	if info, lerr := os.Lstat(filepath.Join(r.common, "objects")); err != nil || lerr != nil || !info.IsDir() {
		return elsewhere("it has no folder of objects")
	}
	for _, o := range objects {
		if name := o.Name(); name == "pack" || fanout(name) {
			parts = append(parts, struct{ from, name string }{r.common, "objects/" + name})
		}
	}
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

// fanout reports whether a folder of objects is named after their first byte.
func fanout(name string) bool {
	return len(name) == 2 && strings.Trim(name, "0123456789abcdef") == ""
}

// borrows reports whether objects of the repository lie in another one, which is
// not read.
func (r *repository) borrows() bool {
	_, err := os.Lstat(filepath.Join(r.common, "objects", "info", "alternates"))
	return err == nil
}

// maxSmall bounds the files of a repository that are read here.
const maxSmall = 1 << 20

// smallFile reads a regular file.
func smallFile(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSmall {
		return nil, fmt.Errorf("%s is no small regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(io.LimitReader(f, maxSmall))
}
