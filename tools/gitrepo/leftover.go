package gitrepo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// temporary begins the names of git folders of our own. The number of the process follows, as
// one that is killed leaves its folder.
const temporary = "rye-git-"

// leftFor is how old a folder is that a dead process has left: longer than any command of git
// may take, as a process of another container looks dead here.
const leftFor = time.Hour

// Temporary makes a folder for a git folder of our own. The caller removes it.
func Temporary() (string, error) {
	return os.MkdirTemp("", fmt.Sprintf("%s%d-", temporary, os.Getpid()))
}

// SweepTemporary removes the git folders that dead processes have left, and returns how many
// they were. Those of other users stay.
func SweepTemporary(now time.Time) (removed int, err error) {
	found, err := filepath.Glob(filepath.Join(os.TempDir(), temporary+"*"))
	failed := []error{err}
	for _, dir := range found {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || now.Sub(info.ModTime()) < leftFor || isAtWork(filepath.Base(dir)) {
			continue
		}
		switch err := os.RemoveAll(dir); {
		case err == nil:
			removed++
		case !errors.Is(err, os.ErrPermission):
			failed = append(failed, err)
		}
	}
	return removed, errors.Join(failed...)
}

// isAtWork reports whether the process that a folder is named after is there. A name of an
// older version names none.
func isAtWork(name string) bool {
	number, _, named := strings.Cut(strings.TrimPrefix(name, temporary), "-")
	pid, err := strconv.Atoi(number)
	return named && err == nil && pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
