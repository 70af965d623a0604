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

// errNoScratch says that nobody has said where git folders of our own may be.
var errNoScratch = errors.New("there is no folder for what git needs; set RYE_CACHE_DIR")

// Temporary makes a git folder of our own in the folder scratch, which is made where it is missing. No command
// of a tool may write there: git, which nothing confines, does what the configuration says. The caller
// removes it.
func Temporary(scratch string) (string, error) {
	if scratch == "" {
		return "", errNoScratch
	}
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(scratch, fmt.Sprintf("%s%d-", temporary, os.Getpid()))
}

// SweepTemporary removes the git folders that dead processes have left in scratch, and returns how many they were.
func SweepTemporary(scratch string, now time.Time) (removed int, err error) {
	entries, err := os.ReadDir(scratch)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	failed := []error{err}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), temporary) {
			continue
		}
		dir := filepath.Join(scratch, e.Name())
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || now.Sub(info.ModTime()) < leftFor || isAtWork(filepath.Base(dir)) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			failed = append(failed, err)
			continue
		}
		removed++
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
