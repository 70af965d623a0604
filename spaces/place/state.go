package place

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/pathname"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// threadsName is the folder of all threads, in a project's .ai/state or, where
// somebody else's is there, in a folder named after the user's state key.
const threadsName = "threads"

// maxBesides bounds how many folders of strangers are passed over.
const maxBesides = 16

// The crash points of making a place, in order.
const (
	CrashStateKey    thread.Crashpoint = "place.key"    // the user has a state key
	CrashPlaceRecord thread.Crashpoint = "place.record" // the user space knows the place
	CrashPlaceFolder thread.Crashpoint = "place.folder" // the folder is there
	CrashPlaceMarker thread.Crashpoint = "place.marker" // the folder says whose it is
)

// CrashDatabases comes last where state of before is taken over: the databases carry
// the mark of the place, or are set aside.
const CrashDatabases thread.Crashpoint = "place.databases"

// Crashpoints lists the crash points of making a place, in order. Taking over the state of before
// and adopting a stranger's go through the same.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{CrashStateKey, CrashPlaceRecord, CrashPlaceFolder, CrashPlaceMarker}
}

// Finder finds out whose state a project has, and makes the user's own. Nothing is
// remembered between two calls.
type Finder struct {
	User        string                          // the user space, which holds .ai
	Item        func() (*sign.PublicKey, error) // the item key, whose state of before is taken over; nil when there is none
	Now         func() time.Time
	Random      io.Reader // nil: the system's
	Crashpoints thread.Crashpoints
}

// State is where the threads of a project are, for one user.
type State struct {
	Dir  string // the user's folder of all threads; where there is none yet, the one it will be
	Seal *Seal  // nil: no thread of the user has run here
	// TakingOver says that the databases are those of before, see [Finder.TakenOver].
	TakingOver bool
	// Former is state that the user's item key signed before there were places. It
	// waits to be taken over by [Finder.Make].
	Former bool
	// Unmarked says that the document is missing which tells whose the folder is.
	Unmarked bool
	// Moved says that the folder was last met at another path; Arrived, that it is
	// not the same folder either, but came from elsewhere, as a backup does and
	// published state. See [Finder.NoteMove].
	Moved, Arrived bool
	// Strangers are folders that are left as they are.
	Strangers []Stranger
	// NoPlace says that the user's threads can be nowhere in the project.
	NoPlace bool
}

// Stranger is a state folder that is not the user's.
type Stranger struct {
	Dir string
	Why string
	// Away says that a link, or somebody else's folder, is on the way to it. Nothing
	// behind it is looked at.
	Away bool
	At   string // what is in the way, where it is not Dir
}

// Find tells whose state a project has, and changes nothing. A state without
// databases and threads is none.
func (f Finder) Find(project string) (State, error) {
	key, err := sign.LoadState(f.User)
	// Of a user space that is out of reach nothing is, and looking needs none.
	if errors.Is(err, sign.ErrNoKey) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrPermission) {
		key, err = nil, nil
	}
	if err != nil {
		return State{}, err
	}
	return f.find(project, key)
}

// Version is a text that changes when what [Finder.Find] tells may have: it looks at
// folders and reads nothing.
func (f Finder) Version(project string) string {
	state := filepath.Join(project, ".ai", "state")
	paths := []string{filepath.Join(project, ".ai"), state, filepath.Join(state, threadsName), sign.StateFolder(f.User)}
	var entries []os.DirEntry
	if why, exists, err := unfitPath(project, state); why == "" && exists && err == nil && leadsAway(project) == "" {
		entries, _ = os.ReadDir(state) // a link is not followed
	}
	for _, e := range entries[:min(len(entries), 2*maxBesides)] {
		paths = append(paths, filepath.Join(state, e.Name()), filepath.Join(state, e.Name(), threadsName))
	}
	var seen strings.Builder
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil {
			fmt.Fprintf(&seen, "%s %v %d;", path, info.Mode(), info.ModTime().UnixNano())
		}
	}
	return seen.String()
}

func (f Finder) find(project string, key *sign.Key) (State, error) {
	var found State
	if why := leadsAway(project); why != "" {
		found.Strangers = append(found.Strangers, Stranger{Dir: filepath.Join(project, ".ai"), Why: why, Away: true})
		found.NoPlace = true
		return found, nil
	}
	state := filepath.Join(project, ".ai", "state")
	switch why, _, err := unfitPath(project, state); {
	case err != nil:
		return State{}, err
	case why != "": // so is every folder below it
		found.Strangers = append(found.Strangers, Stranger{Dir: filepath.Join(state, threadsName), Why: why, Away: true, At: state})
		found.NoPlace = true
		return found, nil
	}
	vacant, former := "", (*State)(nil)
	for _, dir := range candidates(project, key) {
		own, err := f.examine(project, dir, key)
		if err != nil {
			return State{}, err
		}
		switch {
		case own.Seal != nil:
			own.Strangers = found.Strangers
			return own, nil
		case own.Former && former == nil:
			former = &own
		case len(own.Strangers) > 0:
			found.Strangers = append(found.Strangers, own.Strangers...)
		case vacant == "":
			vacant = dir
		}
	}
	if former != nil {
		former.Strangers = found.Strangers
		return *former, nil
	}
	found.Dir = vacant
	found.NoPlace = vacant == "" && key != nil // without a key, one beside those of strangers will do
	return found, nil
}

// candidates are the folders in which the user's state can be, the usual one first.
func candidates(project string, key *sign.Key) []string {
	state := filepath.Join(project, ".ai", "state")
	dirs := []string{filepath.Join(state, threadsName)}
	if key == nil {
		return dirs
	}
	dirs = append(dirs, filepath.Join(state, key.Fingerprint(), threadsName))
	for n := 2; n <= maxBesides; n++ {
		dir := filepath.Join(state, key.Fingerprint()+"-"+strconv.Itoa(n), threadsName)
		dirs = append(dirs, dir)
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return dirs
}

// leadsAway says why nothing of a project's .ai can be the user's; empty when it
// can.
func leadsAway(project string) string {
	ai := filepath.Join(project, ".ai")
	info, err := os.Lstat(ai)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return ""
	}
	real, err := filepath.EvalSymlinks(ai)
	if err != nil {
		return "is a symbolic link that leads nowhere"
	}
	if !pathname.Has(project, real) {
		return "is a symbolic link to " + real + ", outside the project"
	}
	return ""
}

// examine tells what one folder is: the user's (with a seal, or former), a
// stranger's, or nothing at all.
func (f Finder) examine(project, dir string, key *sign.Key) (State, error) {
	stranger := func(format string, args ...any) State {
		return State{Strangers: []Stranger{{Dir: dir, Why: fmt.Sprintf(format, args...)}}}
	}
	switch why, exists, err := unfitPath(project, dir); {
	case err != nil:
		return State{}, err
	case why != "":
		return State{Strangers: []Stranger{{Dir: dir, Why: why, Away: true}}}, nil
	case !exists:
		return State{}, nil
	}
	m, err := readMarker(dir)
	switch {
	case errors.Is(err, fs.ErrPermission): // its owner can mend that
		return State{}, fmt.Errorf("look whose the state of %s is: %w", project, err)
	case err != nil:
		return stranger("its %s cannot be read: %v", markerName, err), nil
	case m == nil:
		return f.unmarked(project, dir, key)
	case key == nil || sign.SignerOf(m.data) != key.Fingerprint():
		return stranger("it is that of key %s", cmp.Or(shown(sign.SignerOf(m.data)), "?")), nil
	}
	signed, err := m.opened(key.Public())
	if err != nil {
		return stranger("its %s is not what your state key signed", markerName), nil //nolint:nilerr // so it is not believed
	}
	return f.known(project, dir, key, signed)
}

// known is the state of a folder that the user's key has signed for a place.
func (f Finder) known(project, dir string, key *sign.Key, m *marker) (State, error) {
	record, err := readRecord(f.User, m.Place)
	if err != nil {
		return State{}, err
	}
	if record == nil {
		return State{Strangers: []Stranger{{Dir: dir, Why: "it was signed by your state key for a place that this user space does not know"}}}, nil
	}
	at := record.whereIs(project, m.Place)
	if at == copied {
		return State{Strangers: []Stranger{{Dir: dir, Why: "it is a copy of what is in " + record.Path}}}, nil
	}
	accepted, err := record.keys()
	if err != nil {
		return State{}, err
	}
	return State{
		Dir: dir, Seal: NewSeal(key, m.Place, accepted...), TakingOver: m.TakingOver,
		Moved: at == moved, Arrived: at == moved && record.Folder != folderIdentity(project),
	}, nil
}

// NoteMove makes the user space know where a place is now. It is called
// after the queue of a place that arrived is settled.
func (f Finder) NoteMove(project string, s State) error {
	record, err := readRecord(f.User, s.Seal.place)
	if err != nil || record == nil {
		return err
	}
	record.Path, record.Folder = project, folderIdentity(project)
	if err := record.write(f.User, s.Seal.place); err != nil {
		return fmt.Errorf("note where the project is now: %w", err)
	}
	return nil
}

// unfitPath looks at the folders on the way to dir, below .ai.
func unfitPath(project, dir string) (why string, exists bool, err error) {
	rel, err := filepath.Rel(filepath.Join(project, ".ai"), dir)
	if err != nil {
		return "", false, err
	}
	at := filepath.Join(project, ".ai")
	for segment := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		at = filepath.Join(at, segment)
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return "", false, nil
		}
		if err != nil {
			return "", false, err
		}
		switch owner, known := OwnerOf(info); {
		case info.Mode()&fs.ModeSymlink != 0:
			return at + " is a symbolic link", true, nil
		case !info.IsDir():
			return at + " is not a folder", true, nil
		case known && os.Geteuid() != 0 && owner != os.Geteuid(): // root may use anybody's folders
			return fmt.Sprintf("%s belongs to user %d, and this process runs as user %d", at, owner, os.Geteuid()), true, nil
		}
	}
	return "", true, nil
}

// unmarked is the state of a folder that does not say whose it is: one that was
// made before there were places, or has lost its document.
func (f Finder) unmarked(project, dir string, key *sign.Key) (State, error) {
	left, err := survey(dir)
	if err != nil {
		return State{Strangers: []Stranger{{Dir: dir, Why: err.Error()}}}, nil //nolint:nilerr // a folder that cannot be read is not believed
	}
	if left.empty() {
		return State{}, nil
	}
	if key != nil {
		if place, all := left.signedBy(key.Public()); all && place != "" {
			found, err := f.known(project, dir, key, &marker{Place: place})
			found.Unmarked = found.Seal != nil
			return found, err
		}
	}
	item, err := f.Item()
	if err != nil {
		return State{}, err
	}
	if item != nil {
		if place, all := left.signedBy(item); all && place == "" {
			return State{Dir: dir, Former: true}, nil
		}
	}
	return State{Strangers: []Stranger{{Dir: dir, Why: "nothing of it was signed by your keys"}}}, nil
}
