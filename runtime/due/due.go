// Package due keeps notes of threads for whom something is still to be sent: a file for
// each, beside the threads. A note is written before the change that it is about, so that
// no crash comes between, and is away when what it is about has been sent. Nothing is
// written, and nothing is asked, where nobody notes anything.
package due

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

// Notes is a folder of notes. After a loss of power a note may be gone.
type Notes struct {
	Dir string
	// Most is how many threads are due at most, the newest, and Late how long one is due; 0:
	// all of them, and for ever. The others are dropped when nobody takes what is sent.
	Most int
	Late time.Duration
}

// maxNote is how many bytes the id of a thread has at most.
const maxNote = 4096

// taken is how the name of a note ends that is being sent.
const taken = ".taken"

// Path is where a thread is noted: ids have slashes and are long.
func (n Notes) Path(id thread.ID) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(n.Dir, hex.EncodeToString(sum[:16]))
}

// Note says that something of a thread is due. Repeating it changes nothing.
func (n Notes) Note(id thread.ID) error {
	err := os.WriteFile(n.Path(id), []byte(id), 0o600)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(n.Dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(n.Path(id), []byte(id), 0o600)
}

// Done forgets a thread for which nothing is noted while it is sent.
func (n Notes) Done(id thread.ID) error { return forget(n.Path(id)) }

// Take marks a note as being sent. A later change makes another note, which [Notes.Sent]
// leaves: the sender may have read the thread before that change. After a crash the thread
// is due as before.
func (n Notes) Take(id thread.ID) error {
	err := os.Rename(n.Path(id), n.Path(id)+taken)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was taken before
	}
	return err
}

// Sent forgets a note that was taken.
func (n Notes) Sent(id thread.ID) error { return forget(n.Path(id) + taken) }

func forget(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Thread is a thread that is due.
type Thread struct {
	ID thread.ID
	At time.Time // when it was noted last
}

// List are the threads that are due, oldest first, and how many were dropped because they
// are too many or too old. A file that is no note is passed over.
func (n Notes) List(now time.Time) (due []Thread, dropped int, err error) {
	if due, err = n.look(); err != nil {
		return nil, 0, err
	}
	for n.Most > 0 && len(due) > n.Most || n.Late > 0 && len(due) > 0 && now.Sub(due[0].At) > n.Late {
		if err := errors.Join(n.Done(due[0].ID), n.Sent(due[0].ID)); err != nil {
			return nil, dropped, err
		}
		due, dropped = due[1:], dropped+1
	}
	return due, dropped, nil
}

// look are the threads that are noted, oldest first.
func (n Notes) look() (due []Thread, err error) {
	entries, err := os.ReadDir(n.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at := map[thread.ID]time.Time{}
	for _, e := range entries {
		t, ok, err := n.read(e)
		if err != nil {
			return nil, err
		}
		if ok && !t.At.Before(at[t.ID]) {
			at[t.ID] = t.At
		}
	}
	for id, when := range at {
		due = append(due, Thread{id, when})
	}
	slices.SortFunc(due, func(a, b Thread) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	return due, nil
}

// Count is how many notes there are.
func (n Notes) Count() int {
	entries, _ := os.ReadDir(n.Dir) // none where there is no folder
	return len(entries)
}

// read reads a note. One that is being written is left for later.
func (n Notes) read(e fs.DirEntry) (t Thread, ok bool, err error) {
	path := filepath.Join(n.Dir, e.Name())
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || info.Size() > maxNote) {
		return t, false, nil
	}
	if err != nil {
		return t, false, err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, false, nil
	}
	if err != nil {
		return t, false, err
	}
	id, err := thread.ParseID(string(text))
	if err != nil || n.Path(id) != strings.TrimSuffix(path, taken) {
		return t, false, nil //nolint:nilerr // nobody's
	}
	return Thread{id, info.ModTime()}, true, nil
}
