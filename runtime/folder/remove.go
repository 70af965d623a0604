package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/itemfile"
)

// Remove removes the folder of a thread with all that is in it, but for the folders of
// threads whose ids begin with this one's. A symbolic link is removed where it is the
// last part of the path or in the folder, and never followed. Without a folder there is
// nothing to do.
func Remove(stateDir string, id thread.ID) (err error) {
	if _, err := thread.ParseID(string(id)); err != nil {
		return err
	}
	above, name, err := itemfile.Above(stateDir, string(id))
	if err != nil || above == nil {
		return err
	}
	defer func() { err = errors.Join(err, above.Close()) }()
	own, err := itemfile.Enter(above, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, itemfile.ErrLinked): // in the place of the folder; it goes, and not what it names
		return gone(above.Remove(name))
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	for range removeTries {
		shared, err := empty(own, stateDir, id)
		if err != nil || shared {
			return err
		}
		if err = gone(above.Remove(name)); !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return fmt.Errorf("somebody writes to the folder of %s", id)
}

// removeTries is how often a folder is emptied in which a lock is made meanwhile.
const removeTries = 5

// gone is nil for what is not there any more.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// empty removes what is in the folder of a thread, which may be shared with threads whose
// folders are in it. Thread.json goes last, so that what a crash leaves is still known as
// what is left of a thread.
func empty(own *os.Root, stateDir string, id thread.ID) (shared bool, err error) {
	entries, err := fs.ReadDir(own.FS(), ".")
	if err != nil {
		return false, err
	}
	var last string
	for _, e := range entries {
		switch name := e.Name(); {
		case name == filepath.Base(Of(stateDir, id).Meta()):
			last = name
			continue
		case e.IsDir() && name != filepath.Base(Of(stateDir, id).Artifacts()) && holdsThread(stateDir, string(id)+"/"+name):
			shared = true
			continue
		case e.IsDir():
			err = own.RemoveAll(name)
		default:
			err = own.Remove(name)
		}
		if gone(err) != nil {
			return shared, err
		}
	}
	if last == "" {
		return shared, nil
	}
	return shared, gone(own.RemoveAll(last))
}

// holdsThread reports whether there is the folder of a thread in one below the state.
func holdsThread(stateDir, below string) (holds bool) {
	w := walker{stateDir: stateDir, most: 1 << 20, threads: 1 << 20, folders: 1 << 20, visit: func(Found) error {
		holds = true
		return errEnough
	}}
	err := w.walk(filepath.FromSlash(below))
	return holds || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// Size is how many bytes are in the folder of a thread, links not followed.
func Size(stateDir string, id thread.ID) (bytes int64, err error) {
	above, name, err := itemfile.Above(stateDir, string(id))
	if errors.Is(err, itemfile.ErrLinked) || above == nil && err == nil {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, above.Close()) }()
	own, err := itemfile.Enter(above, name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, itemfile.ErrLinked) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	err = fs.WalkDir(own.FS(), ".", func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return gone(err)
		}
		info, err := e.Info()
		if err == nil {
			bytes += info.Size()
		}
		return gone(err)
	})
	return bytes, err
}
