package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// recordsDir is where the user space keeps what it knows about projects, below
// .ai.
const recordsDir = "trust/projects"

// maxRecord bounds a record: the copy in it grows by a third.
const maxRecord = 2 * maxSettingsBytes

// Record is what the user has decided about the settings of one project.
type Record struct {
	Project  string            `json:"project"`
	Accepted bool              `json:"accepted"`
	Programs bool              `json:"programs,omitempty"` // what [ProgramsIn] finds counts, too
	At       time.Time         `json:"at"`
	Files    map[string][]byte `json:"files,omitempty"`    // the copy that holds
	Follow   []string          `json:"follow,omitempty"`   // fingerprints of keys whose signed files hold too
	Declined string            `json:"declined,omitempty"` // digest of the settings that the user does not want
}

// Snapshot is the copy that holds.
func (r *Record) Snapshot() Snapshot {
	if r == nil {
		return Snapshot{}
	}
	return Snapshot{Files: r.Files}
}

// ErrNotTrustable says that no settings of a project can be accepted.
var ErrNotTrustable = errors.New("the settings of this project cannot be trusted")

// Accept keeps a snapshot as the copy of the project's settings that holds. Programs of the folder count as far as
// they did.
func Accept(roots resolve.Roots, s Snapshot, at time.Time) error {
	return change(roots, func(r *Record) { r.Accepted, r.Files, r.At, r.Declined = true, s.Files, at.UTC(), "" })
}

// AcceptAll is Accept, and what [ProgramsIn] finds in the folder counts from now on.
func AcceptAll(roots resolve.Roots, s Snapshot, at time.Time) error {
	return change(roots, func(r *Record) {
		r.Accepted, r.Programs, r.Files, r.At, r.Declined = true, true, s.Files, at.UTC(), ""
	})
}

// Decline notes that the user does not want the settings of a snapshot, so that
// they are not asked about again.
func Decline(roots resolve.Roots, s Snapshot, at time.Time) error {
	return change(roots, func(r *Record) { r.At, r.Declined = at.UTC(), s.Digest() })
}

// Follow lets settings files that a key signed hold from now on, but for what
// their schemas keep from it.
func Follow(roots resolve.Roots, fingerprint string, at time.Time) error {
	return change(roots, func(r *Record) {
		r.Accepted, r.At = true, at.UTC()
		if !slices.Contains(r.Follow, fingerprint) {
			r.Follow = append(r.Follow, fingerprint)
		}
	})
}

// Revoke forgets everything about a project and reports whether there was
// anything.
func Revoke(roots resolve.Roots) (bool, error) {
	p := ProjectOf(roots)
	if p.Place == "" || roots.User == "" {
		return false, nil
	}
	root, err := os.OpenRoot(filepath.Join(roots.User, ".ai"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = root.Close() }() // the record is gone by then
	err = root.Remove(recordName(p.Place))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("forget the settings of %s: %w", p.Place, err)
	}
	return true, nil
}

// change rewrites the record of a project. One that cannot be read is replaced.
func change(roots resolve.Roots, with func(*Record)) error {
	p := ProjectOf(roots)
	switch p.Standing {
	case Home:
		return fmt.Errorf("%w: %s is the user space, whose settings are your own", ErrNotTrustable, p.Place)
	case Around:
		return fmt.Errorf("%w: your user space %s lies in it", ErrNotTrustable, roots.User)
	case Nobody:
		return fmt.Errorf("%w: there is no user space", ErrNotTrustable)
	case Stranger, Accepted:
	}
	r := Record{}
	if p.Record != nil {
		r = *p.Record
	}
	with(&r)
	r.Project = p.Place
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := storeRecord(roots.User, recordName(p.Place), append(data, '\n')); err != nil {
		return &RecordError{Dir: filepath.Join(roots.User, ".ai", filepath.FromSlash(recordsDir)), Err: err}
	}
	return nil
}

// RecordError says that the user space cannot keep what the user has decided.
type RecordError struct {
	Dir string
	Err error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("the decision about this project cannot be kept in %s: %v", e.Dir, e.Err)
}

func (e *RecordError) Unwrap() error { return e.Err }

// recordName is the file of a project's record, below .ai.
func recordName(place string) string {
	sum := sha256.Sum256([]byte(place))
	return path.Join(recordsDir, hex.EncodeToString(sum[:16])+".json")
}

func storeRecord(user, name string, data []byte) error {
	if err := os.MkdirAll(filepath.Join(user, ".ai"), 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Join(user, ".ai"))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // the file is synced by then
	if err := root.MkdirAll(recordsDir, 0o700); err != nil {
		return err
	}
	return replaceFile(root, name, data, 0o600)
}

// loadRecord reads the record of a place; nil when there is none. One that others
// could have written is no record of the user's.
func loadRecord(user, place string) (*Record, error) {
	root, err := os.OpenRoot(filepath.Join(user, ".ai"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only read
	name := recordName(place)
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	file := filepath.Join(user, ".ai", filepath.FromSlash(name))
	if err == nil && info.Mode().IsRegular() {
		err = checkMode(file, info)
	}
	if err != nil {
		return nil, err
	}
	data, err := readPlain(root, name, maxRecord)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if r.Project != place {
		return nil, fmt.Errorf("%s is about %q", file, r.Project)
	}
	return &r, nil
}
