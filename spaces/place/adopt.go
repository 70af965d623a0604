package place

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Adoption is what a user would believe of a stranger's state by adopting it.
type Adoption struct {
	Dir     string
	Key     *sign.PublicKey // that signed it
	Place   string          // that its documents name; empty for those of before there were places
	Threads []string        // ids of the threads that verify
	Others  int             // threads that do not, and stay unbelieved
}

// ErrNothingToAdopt says that a project has no stranger's state that could be
// adopted.
var ErrNothingToAdopt = errors.New("there is no state that could be adopted")

// Survey tells what adopting the state of a project would mean, and changes nothing.
// Keys are those that the user knows: state of before there were places does not
// bring along the one that signed it.
func (f Finder) Survey(project string, keys []*sign.PublicKey) (Adoption, error) {
	found, err := f.Find(project)
	if err != nil {
		return Adoption{}, err
	}
	if len(found.Strangers) == 0 {
		return Adoption{}, ErrNothingToAdopt
	}
	if err := ownThreads(found); err != nil {
		return Adoption{}, err
	}
	stranger := found.Strangers[0]
	if stranger.Away || found.NoPlace {
		return Adoption{}, fmt.Errorf("%w: %s: %s", ErrNothingToAdopt, stranger.Dir, stranger.Why)
	}
	m, err := readMarker(stranger.Dir)
	if err != nil {
		return Adoption{}, fmt.Errorf("%w: %w", ErrNothingToAdopt, err)
	}
	if m != nil {
		return surveyMarked(stranger.Dir, m)
	}
	return surveyUnmarked(stranger.Dir, keys)
}

// surveyMarked believes of a document that the key which it brings along has signed
// it, and nothing else.
func surveyMarked(dir string, m *marker) (Adoption, error) {
	key, err := sign.ParsePublic([]byte(m.Key))
	if err == nil {
		m, err = m.opened(key)
	}
	if err != nil {
		return Adoption{}, fmt.Errorf("%w: %s of %s: %w", ErrNothingToAdopt, markerName, dir, err)
	}
	a := Adoption{Dir: dir, Key: key, Place: m.Place}
	return a, a.count()
}

func surveyUnmarked(dir string, keys []*sign.PublicKey) (Adoption, error) {
	var best Adoption
	for _, key := range keys {
		a := Adoption{Dir: dir, Key: key}
		if err := a.count(); err != nil {
			return Adoption{}, err
		}
		if len(a.Threads) > len(best.Threads) {
			best = a
		}
	}
	if best.Key == nil {
		return Adoption{}, fmt.Errorf("%w: no key that you know has signed anything in %s", ErrNothingToAdopt, dir)
	}
	return best, nil
}

// count tells the threads that the key has signed for the place from the others.
func (a *Adoption) count() error {
	found, err := survey(a.Dir)
	if err != nil {
		return err
	}
	for _, path := range found.metas {
		var said about
		data, err := readSmall(path, maxMeta)
		if err == nil {
			err = sign.OpenSigned(data, a.Key, &said)
		}
		if err != nil || said.Place != a.Place || !said.fits() {
			a.Others++
			continue
		}
		id, err := filepath.Rel(a.Dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		a.Threads = append(a.Threads, filepath.ToSlash(id))
	}
	return nil
}

// ErrOwnThreads says that the user has threads of their own in a project, which
// adopting a stranger's state would hide.
var ErrOwnThreads = errors.New("you have threads of your own in this project")

// ownThreads refuses where the user has threads.
func ownThreads(s State) error {
	if s.Seal == nil {
		return nil
	}
	if own, err := survey(s.Dir); err != nil || len(own.metas) > 0 {
		return errors.Join(err, fmt.Errorf("%w, in %s; move that folder away first", ErrOwnThreads, s.Dir))
	}
	return nil
}

// Adopt makes a stranger's state the user's own place: its key is accepted there,
// for what it has signed, and nothing is signed again. The databases carry no mark
// of the place, and are to be set aside; no thread of it may run.
func (f Finder) Adopt(project string, a Adoption) error {
	key, err := sign.EnsureState(f.User, f.Random)
	if err != nil {
		return f.writing(err)
	}
	f.Crashpoints.At(CrashStateKey)
	now, err := f.find(project, key)
	if err != nil {
		return err
	}
	if err := ownThreads(now); err != nil {
		return err
	}
	record := placeRecord{Path: project, Folder: folderIdentity(project), Created: f.Now().UTC()}
	record.accept(Accepted{Key: a.Key, Place: a.Place, At: f.Now().UTC()})
	id, err := f.newID()
	if err != nil {
		return err
	}
	if err := record.write(f.User, id); err != nil {
		return &NoUserSpaceError{User: f.User, Err: err}
	}
	f.Crashpoints.At(CrashPlaceRecord)
	data, err := encodeMarker(key, id, true)
	if err != nil {
		return err
	}
	if err := replaceMarker(a.Dir, data); err != nil {
		return err
	}
	f.Crashpoints.At(CrashPlaceMarker)
	return nil
}
