package trust

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// State says whether a key is trusted.
type State string

// The states of a key.
const (
	Own       State = "own"
	Trusted   State = "trusted"
	Untrusted State = "untrusted"
)

// ownOwner is the owner of the own key.
const ownOwner = "you"

// Entry is a key: the own one, or one that a document is about. A key has an
// entry for each document.
type Entry struct {
	Fingerprint string
	Owner       string
	Version     string
	Attestation string
	Space       item.Space
	Path        string
	State       State
	By          string   // fingerprint of the key that vouches; empty for the own key and the system space
	Reason      string   // why it is untrusted
	Notes       []string // what of its document is not used
	Older       bool     // a trusted key signed its document with an older signature
	Key         *sign.PublicKey
}

// Sources are what keys and system files are read from.
type Sources struct {
	Roots resolve.Roots
	Own   *sign.PublicKey // nil when the user has no signing key
	// Shipped reports whether a file of the system space is the one that the
	// program was built with; path is below .ai. Without it none is.
	Shipped func(path string, content []byte) bool
}

// Keyring is the set of keys at the time it was loaded. It is not changed
// afterwards and is safe for concurrent use.
type Keyring struct {
	keys     map[string]*sign.PublicKey // trusted, by fingerprint
	owners   map[string]string
	entries  []Entry
	problems []Problem
	own      *sign.PublicKey
	shipped  func(path string, content []byte) bool
}

// Load reads the keys of all spaces. A fault in one document is no reason to do
// without the others; see [Keyring.Problems].
func Load(from Sources) *Keyring {
	read := readSpaces(from.Roots)
	r := &Keyring{
		keys:     map[string]*sign.PublicKey{},
		owners:   map[string]string{},
		problems: read.problems,
		own:      from.Own,
		shipped:  from.Shipped,
	}
	if r.shipped == nil {
		r.shipped = func(string, []byte) bool { return false }
	}
	claims := r.parse(read.files)
	if r.own != nil {
		r.admit(r.own, ownOwner)
		r.entries = append(r.entries, Entry{Fingerprint: r.own.Fingerprint(), Owner: ownOwner, Space: item.User,
			Path: sign.PublicFile(from.Roots.User), State: Own, Key: r.own})
	}
	r.decide(claims)
	for _, c := range claims {
		r.entries = append(r.entries, c.entry)
	}
	slices.SortStableFunc(r.entries, compareEntries)
	return r
}

// claim is a document that may or may not count.
type claim struct {
	entry Entry
	sig   *sign.Signature
	rest  []byte // the document without its signature
	data  []byte
}

// parse reads the documents, and notes those that cannot be read.
func (r *Keyring) parse(files []file) []*claim {
	var claims []*claim
	for _, f := range files {
		doc, key, err := ParseDocument(f.data)
		if err == nil && f.name != doc.Fingerprint+".toml" {
			err = fmt.Errorf("its name must be %s.toml, after the fingerprint in it", doc.Fingerprint)
		}
		if err != nil {
			r.problems = append(r.problems, Problem{Space: f.space, Path: f.path, Reason: err.Error()})
			continue
		}
		c := &claim{data: f.data, entry: Entry{
			Fingerprint: doc.Fingerprint, Owner: doc.Owner, Version: doc.Version, Attestation: doc.Attestation,
			Space: f.space, Path: f.path, Key: key, Notes: doc.notes,
		}}
		c.sig, c.rest = sign.Split(f.data, ".toml")
		claims = append(claims, c)
	}
	return claims
}

func (r *Keyring) admit(key *sign.PublicKey, owner string) {
	if _, known := r.keys[key.Fingerprint()]; !known {
		r.keys[key.Fingerprint()], r.owners[key.Fingerprint()] = key, owner
	}
}

// decide settles the claims. Those of the user's space may rest on each other, so
// they are gone through until a round adds nothing; each round but the last adds
// a key. Those of the project come last and see only what stood before them.
func (r *Keyring) decide(claims []*claim) {
	for added := true; added; {
		added = false
		for _, c := range claims {
			if c.entry.Space != item.Project && !c.counts() && r.vouch(c) {
				r.admit(c.entry.Key, c.entry.Owner)
				added = true
			}
		}
	}
	var granted []*claim
	for _, c := range claims {
		if c.entry.Space == item.Project && r.vouch(c) {
			granted = append(granted, c)
		}
	}
	for _, c := range granted {
		r.admit(c.entry.Key, c.entry.Owner)
	}
}

func (c *claim) counts() bool { return c.entry.State == Own || c.entry.State == Trusted }

// vouch reports whether a claim counts with the keys trusted by now, and notes
// the outcome in it.
func (r *Keyring) vouch(c *claim) bool {
	state, by, err := r.examine(c)
	c.entry.State, c.entry.By, c.entry.Reason = state, by, ""
	c.entry.Older = errors.Is(err, errOlderDocument)
	if err != nil {
		c.entry.Reason = err.Error()
	}
	return err == nil
}

func (r *Keyring) examine(c *claim) (state State, by string, err error) {
	if r.own != nil && c.entry.Key.Equal(r.own) {
		return Own, "", nil
	}
	if c.entry.Space == item.System {
		if !r.shipped(systemPath(c.entry.Path), c.data) {
			return Untrusted, "", ErrNotShipped
		}
		return Trusted, "", nil
	}
	if c.sig == nil {
		return Untrusted, "", errors.New("its document is not signed")
	}
	by = c.sig.Fingerprint
	switch key := r.keys[by]; {
	case !c.sig.Covers(c.rest, ".toml"):
		return Untrusted, by, errors.New("its document was changed after it was signed")
	case key == nil:
		return Untrusted, by, r.stranger(c.entry)
	case c.sig.VerifyBy(key) != nil:
		return Untrusted, by, errors.New("the signature of its document is not genuine")
	case !c.sig.Bound():
		// A document that names its own key is not enough: it is also a valid Python
		// script, and somebody may have had it signed as that.
		return Untrusted, by, errOlderDocument
	case c.sig.Name != documentFor(c.entry.Fingerprint):
		return Untrusted, by, fmt.Errorf("the signature of its document was made for %s", c.sig.Name)
	}
	return Trusted, by, nil
}

// errOlderDocument says why a document that a trusted key signed does not count.
var errOlderDocument = errors.New("the signature of its document is an older one, which is for no kind and id, " +
	"so the text can have been signed as something else")

// stranger says why nobody vouches for a key.
func (r *Keyring) stranger(e Entry) error {
	if r.own == nil {
		return errors.New("you have no signing key to vouch for it with")
	}
	if e.Space == item.Project {
		return errors.New("its document is not signed by a key that is trusted without this project")
	}
	return errors.New("its document is not signed by a trusted key")
}

func compareEntries(a, b Entry) int {
	return cmp.Or(
		cmp.Compare(rank(a), rank(b)),
		cmp.Compare(a.Fingerprint, b.Fingerprint),
	)
}

// rank puts the own key first, then the spaces in their order.
func rank(e Entry) int {
	if e.State == Own {
		return -1
	}
	return slices.Index(item.Spaces(), e.Space)
}

// Trusts says whose a key is, if it counts.
func (r *Keyring) Trusts(key *sign.PublicKey) (owner string, trusted bool) {
	known := r.keys[key.Fingerprint()]
	if known == nil || !known.Equal(key) {
		return "", false
	}
	return r.owners[key.Fingerprint()], true
}

// List returns every key with what it is worth: the own one first, then project,
// user and system space, each by fingerprint.
func (r *Keyring) List() []Entry { return slices.Clone(r.entries) }

// Problems returns what could not be read or was refused.
func (r *Keyring) Problems() []Problem { return slices.Clone(r.problems) }

// Show returns the entries of the key whose fingerprint is, or begins with,
// these digits. The error is ErrUnknownKey or ErrAmbiguousKey.
func (r *Keyring) Show(digits string) ([]Entry, error) {
	var found []Entry
	for _, e := range r.entries {
		if digits != "" && strings.HasPrefix(e.Fingerprint, strings.ToLower(digits)) {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: %.32q", ErrUnknownKey, digits)
	}
	for _, e := range found {
		if e.Fingerprint != found[0].Fingerprint {
			return nil, fmt.Errorf("%w: %s and %s begin with %q", ErrAmbiguousKey, found[0].Fingerprint, e.Fingerprint, digits)
		}
	}
	return found, nil
}

// systemPath is the path below .ai of a file of the system space.
func systemPath(path string) string { return strings.TrimPrefix(path, "system:") }
