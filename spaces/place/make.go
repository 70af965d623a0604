package place

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// NoUserSpaceError says that the user space cannot be written, where everything is
// kept that tells a user's own state from a stranger's.
type NoUserSpaceError struct {
	User string
	Err  error
}

func (e *NoUserSpaceError) Error() string {
	return fmt.Sprintf("no thread can start: the user space %s cannot be written, where the key of its state is kept: %v", e.User, e.Err)
}

func (e *NoUserSpaceError) Unwrap() error { return e.Err }

// Try is what a person can do.
func (e *NoUserSpaceError) Try() string { return "USER_SPACE=$(mktemp -d)" }

// NoPlaceError says that a project has no folder in which the user's threads could
// be.
type NoPlaceError struct{ Strangers []Stranger }

func (e *NoPlaceError) Error() string {
	if len(e.Strangers) == 0 {
		return "no thread can start: there is no folder for its state"
	}
	first := e.Strangers[0]
	return fmt.Sprintf("no thread can start: %s: %s", first.Dir, first.Why)
}

// Try is what a person can do.
func (e *NoPlaceError) Try() string {
	if len(e.Strangers) == 0 {
		return "look into .ai/state of the project"
	}
	first := e.Strangers[0]
	return "put a folder of your own in the place of " + strconv.Quote(cmp.Or(first.At, first.Dir))
}

// Make returns the user's state in a project, and makes it at first need: the
// state key, what the user space keeps of the place, the folder, and the document
// in it, which comes last. A crash between any two leaves nothing that keeps the
// next start from making it. Former state is taken over.
func (f Finder) Make(project string) (State, error) {
	key, err := sign.EnsureState(f.User, f.Random)
	if err != nil {
		return State{}, f.writing(err)
	}
	f.Crashpoints.At(CrashStateKey)
	for range 3 { // once more when another process is first
		found, err := f.find(project, key)
		switch {
		case err != nil:
			return State{}, err
		case found.Unmarked:
			return found, f.remark(found)
		case found.Seal != nil:
			return found, nil
		case found.Dir == "":
			return State{}, &NoPlaceError{found.Strangers}
		}
		err = f.settle(project, found, key)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return State{}, err
		}
	}
	return State{}, fmt.Errorf("make the folder of threads of %s: others keep making it", project)
}

// writing tells a user space that cannot be written from what else goes wrong.
func (f Finder) writing(err error) error {
	_, path := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	if !path && !link {
		return err
	}
	return &NoUserSpaceError{User: f.User, Err: err}
}

func (f Finder) newID() (string, error) {
	if f.Random == nil {
		return newPlaceID(rand.Reader)
	}
	return newPlaceID(f.Random)
}

// settle makes a place of a folder.
func (f Finder) settle(project string, found State, key *sign.Key) error {
	id, err := f.newID()
	if err != nil {
		return err
	}
	record := placeRecord{Path: project, Folder: folderIdentity(project), Created: f.Now().UTC()}
	if found.Former {
		item, err := f.Item()
		if err != nil {
			return err
		}
		if item == nil {
			return fmt.Errorf("take over the state of %s: %w", project, sign.ErrNoKey)
		}
		record.accept(Accepted{Key: item, At: f.Now().UTC()})
	}
	if err := record.write(f.User, id); err != nil {
		return &NoUserSpaceError{User: f.User, Err: err}
	}
	f.Crashpoints.At(CrashPlaceRecord)
	if err := f.mark(found, key, id); err != nil {
		_ = os.Remove(recordPath(f.User, id)) // of a place that is none
		return err
	}
	f.Crashpoints.At(CrashPlaceMarker)
	return nil
}

// mark makes the folder and says in it which place it is.
func (f Finder) mark(found State, key *sign.Key, id string) error {
	if err := os.MkdirAll(found.Dir, 0o700); err != nil {
		return err
	}
	f.Crashpoints.At(CrashPlaceFolder)
	data, err := encodeMarker(key, id, found.Former)
	if err != nil {
		return err
	}
	return makeMarker(found.Dir, data)
}

// remark writes the document again that says whose a folder is.
func (f Finder) remark(found State) error {
	data, err := encodeMarker(found.Seal.key, found.Seal.place, false)
	if err != nil {
		return err
	}
	if err := makeMarker(found.Dir, data); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// TakenOver notes that the databases of a state that was taken over carry the mark
// of the place, or have been set aside.
func (f Finder) TakenOver(s State) error {
	data, err := encodeMarker(s.Seal.key, s.Seal.place, false)
	if err != nil {
		return err
	}
	return replaceMarker(s.Dir, data)
}
