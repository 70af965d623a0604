package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// project is an opened project directory.
type project struct {
	root  *os.Root
	dir   string                   // absolute
	real  string                   // the same without links
	here  func(path string) string // see [tool.Env.Here]
	marks *protect.Marks
	mask  tool.Masker // nil: there is nothing to hide
	env   tool.Env    // of the call
	guard *guard
	turn  *turn // to write, while a call does
}

// open opens the project of env. The caller closes it.
func (s *space) open(env tool.Env) (*project, error) {
	at := env.Dir()
	if !filepath.IsAbs(at) {
		return nil, tool.Faultf(tool.CodeNoProject, "no project is known for this call").
			WithHint("Name the project with project_path.")
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return nil, tool.Faultf(tool.CodeNoProject, "the project cannot be opened: %w", err).With("path", at)
	}
	p := &project{root: root, dir: filepath.Clean(at), mask: env.Mask, here: env.Here, env: env, guard: s.guard}
	if p.real, err = filepath.EvalSymlinks(p.dir); err != nil {
		return nil, errors.Join(explain(p.dir, err), root.Close())
	}
	p.marks = protect.In(p.real, s.user)
	return p, nil
}

// Close ends the use of the project.
func (p *project) Close() error { return p.root.Close() }

// masked is a text without the secrets of the thread.
func (p *project) masked(text string) string {
	if p.mask == nil {
		return text
	}
	return p.mask.Mask(text)
}

// locate turns a path as a model gives it into one relative to the project.
// Absolute paths must name something in the project, by its own path or, where
// that contains symbolic links, by its real one.
func (p *project) locate(path string) (string, error) {
	rel, err := p.relative(path)
	if err != nil {
		return "", err
	}
	// Errors name the relative path, which must hold all of a secret or nothing of it.
	if shown := p.masked(path); shown != path && !strings.HasSuffix(shown, p.masked(rel)) {
		return "", tool.Faultf(tool.CodeBadArguments, "a path with a secret in it must be relative to the project, without empty names, . and ..").
			With("path", shown)
	}
	return rel, nil
}

func (p *project) relative(path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", tool.Faultf(tool.CodeBadArguments, "path %q contains a NUL character", path)
	}
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		return p.inside(path, filepath.Clean(path))
	}
	path = p.here(path)
	if rel, is := pathname.Inside(p.dir, path); is {
		return rel, nil
	}
	rel, err := filepath.Rel(p.real, path)
	if err != nil {
		return "", outside(path)
	}
	return p.inside(path, rel)
}

func (p *project) inside(asked, rel string) (string, error) {
	if !filepath.IsLocal(rel) {
		return "", outside(asked)
	}
	return rel, nil
}

func outside(path string) *tool.Fault {
	return tool.Faultf(tool.CodeOutsideProject, "%q is outside the project", filepath.ToSlash(path)).
		With("path", filepath.ToSlash(path)).
		WithHint("File tools reach the project only. Give a path relative to it.")
}

// explain turns a failed file operation on path into a fault where a model can
// do something about it.
func explain(path string, err error) error {
	path = filepath.ToSlash(path)
	switch {
	case err == nil:
		return nil
	case escapes(err):
		return tool.Faultf(tool.CodeOutsideProject, "%q leads outside the project or through an absolute symbolic link", path).
			With("path", path).WithHint("File tools reach the project only. Give the path of the file itself.")
	case errors.Is(err, fs.ErrNotExist):
		return tool.Faultf(tool.CodeNotFound, "%q does not exist", path).With("path", path).
			WithHint("Find the right path with rye/file-system/ls or rye/file-system/glob.")
	case errors.Is(err, fs.ErrPermission):
		return tool.Faultf(tool.CodeToolFailed, "the operating system denies access to %q", path).With("path", path)
	default:
		return tool.Faultf(tool.CodeToolFailed, "%q: %w", path, cause(err)).With("path", path)
	}
}

// cause is an error without the name of the one file of a path at which it arose,
// which may be a part of a secret.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.Err
	}
	return err
}

// escapes recognises the refusal of os.Root, whose error value package os
// keeps to itself. Were its text to change, the access would still be refused.
func escapes(err error) bool {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error() == "path escapes from parent"
}

func checkRegular(rel string, info fs.FileInfo) error {
	path := filepath.ToSlash(rel)
	switch {
	case info.IsDir():
		return tool.Faultf(tool.CodeBadArguments, "%q is a directory", path).With("path", path).
			WithHint("List it with rye/file-system/ls.")
	case !info.Mode().IsRegular():
		return tool.Faultf(tool.CodeBadArguments, "%q is not a regular file but a %s", path, kind(info.Mode())).With("path", path)
	default:
		return nil
	}
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	case m&fs.ModeSymlink != 0:
		return "symlink"
	case m.IsDir():
		return "directory"
	default:
		return "file"
	}
}
