package place

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// placeRecord is what the user space keeps about a place, in a file named after its id.
type placeRecord struct {
	Version  int           `json:"version"`
	Path     string        `json:"path"`   // of the project, as it was last met
	Folder   string        `json:"folder"` // identity of that, where the system tells one
	Accepted []acceptedKey `json:"accepted,omitempty"`
	Created  time.Time     `json:"created_at"`
}

// acceptedKey is an [Accepted] as it is stored.
type acceptedKey struct {
	Fingerprint string    `json:"fingerprint"`
	PublicKey   string    `json:"public_key"` // PEM
	Place       string    `json:"place,omitempty"`
	At          time.Time `json:"at"`
}

const (
	recordVersion = 1
	maxRecord     = 64 << 10
	placeBytes    = 16 // of an id
)

// isPlaceID reports whether a text has the form of an id. It becomes the name of a file,
// so nothing else must get there.
func isPlaceID(id string) bool {
	return len(id) == 2*placeBytes && strings.Trim(id, "0123456789abcdef") == ""
}

func newPlaceID(random io.Reader) (string, error) {
	id := make([]byte, placeBytes)
	if _, err := io.ReadFull(random, id); err != nil {
		return "", fmt.Errorf("make the id of a place: %w", err)
	}
	return hex.EncodeToString(id), nil
}

func recordPath(user, id string) string {
	return filepath.Join(user, ".ai", "trust", "places", id+".json")
}

// readRecord returns nil when the user space knows no such place.
func readRecord(user, id string) (*placeRecord, error) {
	if !isPlaceID(id) {
		return nil, nil
	}
	data, err := readSmall(recordPath(user, id), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is known of a place: %w", err)
	}
	var r placeRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read %s: %w", recordPath(user, id), err)
	}
	if r.Version != recordVersion {
		return nil, fmt.Errorf("read %s: version %d is not known; this rye-mcp knows %d", recordPath(user, id), r.Version, recordVersion)
	}
	return &r, nil
}

// write replaces the record atomically.
func (r *placeRecord) write(user, id string) error {
	r.Version = recordVersion
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode what is known of a place: %w", err)
	}
	path := recordPath(user, id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(path, append(data, '\n'), 0o600, renameio.WithTempDir(filepath.Dir(path)))
}

// keys are the accepted keys of the record.
func (r *placeRecord) keys() ([]Accepted, error) {
	var all []Accepted
	for _, a := range r.Accepted {
		key, err := sign.ParsePublic([]byte(a.PublicKey))
		if err != nil {
			return nil, fmt.Errorf("accepted key %.16s of a place: %w", a.Fingerprint, err)
		}
		all = append(all, Accepted{Key: key, Place: a.Place, At: a.At})
	}
	return all, nil
}

func (r *placeRecord) accept(a Accepted) {
	r.Accepted = append(r.Accepted, acceptedKey{
		Fingerprint: a.Key.Fingerprint(), PublicKey: string(a.Key.PEM()), Place: a.Place, At: a.At,
	})
}

// whereabouts says how a folder stands to the one that a record tells of.
type whereabouts int

const (
	here   whereabouts = iota
	moved              // the folder is another by its path, and there is none at the old one
	copied             // the place is still where it was
)

// whereIs compares a project with the record of the place that it says it is.
func (r *placeRecord) whereIs(project, place string) whereabouts {
	if r.Path == project {
		return here
	}
	if _, err := os.Lstat(r.Path); errors.Is(err, fs.ErrNotExist) {
		return moved
	}
	// Another folder may have come in the place of the old one.
	if r.Folder != "" && r.Folder == folderIdentity(project) && !holds(r.Path, place) {
		return moved
	}
	return copied
}

// holds reports whether a project's state says that it is a place. Nothing of it is
// believed: it only keeps another folder from being that place.
func holds(project, place string) bool {
	state := filepath.Join(project, ".ai", "state")
	entries, err := os.ReadDir(state)
	if err != nil {
		return false
	}
	for _, e := range entries {
		for _, dir := range []string{filepath.Join(state, e.Name()), filepath.Join(state, e.Name(), threadsName)} {
			if m, err := readMarker(dir); err == nil && m != nil && m.Place == place {
				return true
			}
		}
	}
	return false
}

// marker is the signed document beside the databases that says which place they
// are of, so that a stranger's are known before they are opened.
type marker struct {
	Type    string `json:"type"`
	Version int    `json:"version"`
	Place   string `json:"place"`
	Key     string `json:"public_key"` // PEM, for a user who may come to adopt what it signed
	// TakingOver says that the databases are those of before and carry no mark.
	TakingOver bool `json:"taking_over,omitempty"`
	data       []byte
}

const (
	markerName    = "place.json"
	markerType    = "rye-mcp/place"
	markerVersion = 1
	maxMarker     = 8 << 10
)

// readMarker reads the document of a state folder without believing it; nil
// when there is none.
func readMarker(dir string) (*marker, error) {
	data, err := readSmall(filepath.Join(dir, markerName), maxMarker)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := marker{data: data}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	return &m, nil
}

// opened is the document when key has signed it.
func (m *marker) opened(key *sign.PublicKey) (*marker, error) {
	var signed marker
	if err := sign.OpenSigned(m.data, key, &signed); err != nil {
		return nil, err
	}
	if signed.Type != markerType || signed.Version != markerVersion || !isPlaceID(signed.Place) {
		return nil, fmt.Errorf("%w: it is not the document of a place", sign.ErrBadSignature)
	}
	return &signed, nil
}

func encodeMarker(key *sign.Key, place string, takingOver bool) ([]byte, error) {
	return sign.EncodeSigned(marker{
		Type: markerType, Version: markerVersion, Place: place, Key: string(key.Public().PEM()), TakingOver: takingOver,
	}, key)
}

// makeMarker writes the document where there is none; the error is fs.ErrExist
// when another process was first.
func makeMarker(dir string, data []byte) error {
	draft, err := os.CreateTemp(dir, "."+markerName+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	_, err = draft.Write(data)
	if err := errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	return os.Link(draft.Name(), filepath.Join(dir, markerName))
}

func replaceMarker(dir string, data []byte) error {
	return renameio.WriteFile(filepath.Join(dir, markerName), data, 0o600, renameio.WithTempDir(dir))
}

// readSmall reads a regular file of at most so many bytes, through no link.
func readSmall(path string, most int64) ([]byte, error) { return regular.Read(path, most) }
