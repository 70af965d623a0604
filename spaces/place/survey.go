package place

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// left is what lies in a state folder.
type left struct {
	metas     []string // paths of thread.json
	databases bool
}

const (
	maxMeta    = 16 << 20 // of a thread.json
	maxCounted = 500      // threads of a stranger that are counted by their key
	maxGlanced = 1 << 20  // of a stranger's thread.json
)

// survey goes through a state folder and reads nothing of it.
func survey(dir string) (left, error) {
	var found left
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has gone meanwhile
			return nil
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "artifacts":
			return filepath.SkipDir
		case d.Name() == "thread.json":
			found.metas = append(found.metas, path)
		case filepath.Dir(path) == dir && strings.HasSuffix(d.Name(), ".db"):
			found.databases = true
		}
		return nil
	})
	if err != nil {
		return found, fmt.Errorf("it cannot be gone through: %w", err)
	}
	return found, nil
}

func (l left) empty() bool { return len(l.metas) == 0 && !l.databases }

// about is what a thread.json says of itself.
type about struct {
	Type  string `json:"type"`
	Place string `json:"place"`
}

// signedBy reports whether a key has signed every thread.json, for one and the same
// place, which is empty where they name none.
func (l left) signedBy(key *sign.PublicKey) (place string, all bool) {
	for i, path := range l.metas {
		data, err := readSmall(path, maxMeta)
		if err != nil || sign.SignerOf(data) != key.Fingerprint() {
			return "", false
		}
		var a about
		if err := sign.OpenSigned(data, key, &a); err != nil || i > 0 && a.Place != place || !a.fits() {
			return "", false
		}
		place = a.Place
	}
	return place, true
}

// fits refuses other documents that a key has signed, such as receipts, in the
// place of a thread.json.
func (a about) fits() bool {
	if a.Place == "" {
		return a.Type == ""
	}
	return a.Type == MetaType
}

// MetaType is what a thread.json says that it is.
const MetaType = "rye-mcp/thread"

// Signers counts the threads of a stranger's folder, as far as there are not too
// many, by the key that has signed them, as they say themselves; the empty name is
// that of no key.
func (s Stranger) Signers() map[string]int {
	if s.Away {
		return nil
	}
	found, err := survey(s.Dir)
	if err != nil {
		return nil
	}
	signers := map[string]int{}
	for _, path := range found.metas[:min(len(found.metas), maxCounted)] {
		data, err := readSmall(path, maxGlanced)
		if err != nil {
			signers[""]++
			continue
		}
		signers[shown(sign.SignerOf(data))]++
	}
	return signers
}

// Unsigned reports whether no key has signed any thread that is there.
func (s Stranger) Unsigned() bool {
	signers := s.Signers()
	return len(signers) == 1 && signers[""] > 0
}

// shown is a fingerprint as it may be shown: a stranger's file can hold anything.
func shown(fingerprint string) string {
	if len(fingerprint) != 16 || strings.Trim(fingerprint, "0123456789abcdef") != "" {
		return ""
	}
	return fingerprint
}

// String says in one line what is there and that it is left alone.
func (s Stranger) String() string {
	signers := s.Signers()
	var parts []string
	all := 0
	for fingerprint, n := range signers {
		all += n
		threads := "1 thread"
		if n != 1 {
			threads = fmt.Sprintf("%d threads", n)
		}
		if fingerprint == "" {
			parts = append(parts, threads+" that no key has signed")
		} else {
			parts = append(parts, threads+" of key "+fingerprint)
		}
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return fmt.Sprintf("%s is not yours (%s); it is left as it is", s.Dir, s.Why)
	}
	verb := "are"
	if all == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%s %s here, in %s, which is not yours (%s); it is left as it is", strings.Join(parts, " and "), verb, s.Dir, s.Why)
}
