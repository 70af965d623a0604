package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// maxPointer bounds the files by which git links a worktree to its repository.
const maxPointer = 4 << 10

// mainPlace is the folder that stands for a project in the records: in a linked
// worktree of a git repository the same folder of the main one. Every link is read
// in both directions, since a folder can claim to belong to any repository: only
// the repository itself can say that a worktree is its own.
func mainPlace(project string) string {
	for top := project; ; top = filepath.Dir(top) {
		info, err := os.Lstat(filepath.Join(top, ".git"))
		if err == nil && info.Mode().IsRegular() {
			return linkedPlace(project, top)
		}
		// A folder is a repository of its own. A link could be to anybody's.
		if err == nil || top == filepath.Dir(top) {
			return project
		}
	}
}

// linkedPlace is mainPlace in a worktree whose .git is a file.
func linkedPlace(project, top string) string {
	main, err := mainWorktree(top)
	if err != nil {
		return project
	}
	rel, err := filepath.Rel(top, project)
	if err != nil {
		return project
	}
	return filepath.Join(main, rel)
}

var errNotLinked = errors.New("not a linked worktree of that repository")

// Linked follows .git of a linked worktree to the folder that the worktree has in its
// repository, and to what all worktrees of that have in common.
func Linked(top string) (private, common string, err error) {
	pointer := filepath.Join(top, ".git")
	text, err := readPointer(pointer)
	if err != nil {
		return "", "", err
	}
	private, ok := strings.CutPrefix(text, "gitdir:")
	if !ok {
		return "", "", errNotLinked
	}
	private, err = filepath.EvalSymlinks(absolute(top, strings.TrimSpace(private)))
	if err != nil {
		return "", "", err
	}
	back, err := readPointer(filepath.Join(private, "gitdir"))
	if err != nil {
		return "", "", err
	}
	if !sameFile(absolute(private, back), pointer) {
		return "", "", errNotLinked
	}
	text, err = readPointer(filepath.Join(private, "commondir"))
	if err != nil {
		return "", "", err
	}
	common, err = filepath.EvalSymlinks(absolute(private, text))
	if err != nil {
		return "", "", err
	}
	// The back link counts because it stands where only the repository's owner writes.
	if filepath.Dir(private) != filepath.Join(common, "worktrees") {
		return "", "", errNotLinked
	}
	return private, common, nil
}

// mainWorktree is the main worktree of the repository of a linked one.
func mainWorktree(top string) (string, error) {
	_, common, err := Linked(top)
	if err != nil {
		return "", err
	}
	if filepath.Base(common) == ".git" {
		return filepath.Dir(common), nil
	}
	return common, nil // a bare repository has no main worktree
}

func absolute(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}

func sameFile(a, b string) bool {
	infoA, errA := os.Lstat(a)
	infoB, errB := os.Lstat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// readPointer reads a small regular file of one line.
func readPointer(path string) (string, error) {
	text, err := regular.Read(path, maxPointer)
	if errors.Is(err, regular.ErrNot) || errors.Is(err, regular.ErrTooLarge) {
		err = &fs.PathError{Op: "read", Path: path, Err: errNotLinked}
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line), err
}
