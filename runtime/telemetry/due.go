package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Due is a folder with a file for each thread whose spans are due. It is written before
// the change that ends a thread, so that no crash comes between; one that has not ended
// is passed over. After a loss of power a note may be gone, and the spans with it.
type Due struct{ Dir string }

const (
	// maxDue is how many threads are due at most, the newest; older ones are dropped when
	// nobody takes what is sent.
	maxDue = 10_000
	// maxNote is how many bytes the id of a thread has at most.
	maxNote = 4096
	// late is how long a thread is due.
	late = 7 * 24 * time.Hour
)

// file is where a thread is noted: ids have slashes and are long.
func (d Due) file(id thread.ID) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(d.Dir, hex.EncodeToString(sum[:16]))
}

// Note says that the spans of a thread are due when it has ended. Repeating it changes
// nothing.
func (d Due) Note(id thread.ID) error {
	err := os.WriteFile(d.file(id), []byte(id), 0o600)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(d.file(id), []byte(id), 0o600)
}

// Done forgets a thread.
func (d Due) Done(id thread.ID) error {
	if err := os.Remove(d.file(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// note is a thread that is due.
type note struct {
	id thread.ID
	at time.Time
}

// list are the threads that are due, oldest first, and how many were dropped because
// they are too many or too old. A file that is none of these is removed.
func (d Due) list(now time.Time) (due []note, dropped int, err error) {
	entries, err := os.ReadDir(d.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		n, ok, err := d.read(e)
		if err != nil {
			return nil, dropped, err
		}
		if ok {
			due = append(due, n)
		}
	}
	slices.SortFunc(due, func(a, b note) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return strings.Compare(string(a.id), string(b.id))
	})
	for len(due) > maxDue || len(due) > 0 && now.Sub(due[0].at) > late {
		if err := d.Done(due[0].id); err != nil {
			return nil, dropped, err
		}
		due, dropped = due[1:], dropped+1
	}
	return due, dropped, nil
}

// Count is how many threads are due.
func (d Due) Count() int {
	entries, _ := os.ReadDir(d.Dir) // none where there is no folder
	return len(entries)
}

// read reads a note. One that is being written is left for later.
func (d Due) read(e fs.DirEntry) (n note, ok bool, err error) {
	path := filepath.Join(d.Dir, e.Name())
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || info.Size() > maxNote) {
		return n, false, nil
	}
	if err != nil {
		return n, false, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return n, false, nil
	}
	if err != nil {
		return n, false, err
	}
	id, err := thread.ParseID(string(text))
	if err != nil || d.file(id) != path {
		return n, false, nil //nolint:nilerr // nobody's
	}
	return note{id, info.ModTime()}, true, nil
}
