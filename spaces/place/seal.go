package place

import (
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// ErrNoState says that this user has no state in a project yet.
var ErrNoState = errors.New("no thread of yours has run in this project")

// Seal vouches for what the threads of one place leave behind: the user's state key
// signs it, and what is signed says which place it is of. It is not changed after it
// was made and is safe for concurrent use. A nil seal vouches for nothing.
type Seal struct {
	key      *sign.Key
	place    string
	accepted []Accepted
}

// Accepted is a key whose state counts at a place although it is not the user's
// state key: the user's item key, which signed state before there was that, or one
// that the user adopted.
type Accepted struct {
	Key   *sign.PublicKey
	Place string // that its documents name; empty for those of before there were places
	At    time.Time
}

// NewSeal is the seal of a place.
func NewSeal(key *sign.Key, place string, accepted ...Accepted) *Seal {
	return &Seal{key: key, place: place, accepted: accepted}
}

// Place is the id of the place.
func (s *Seal) Place() string { return s.place }

// Key signs what threads leave.
func (s *Seal) Key() *sign.Key { return s.key }

// Fingerprint is that of the key.
func (s *Seal) Fingerprint() string { return s.key.Fingerprint() }

// Encode encodes a document as signed JSON. It must name the place where [Seal.Open]
// is to find it.
func (s *Seal) Encode(v any) ([]byte, error) {
	if s == nil {
		return nil, ErrNoState
	}
	return sign.EncodeSigned(v, s.key)
}

// Open decodes a signed document, and returns the place that it must name.
func (s *Seal) Open(data []byte, v any) (place string, err error) {
	if s == nil {
		return "", ErrNoState
	}
	signer := sign.SignerOf(data)
	if signer == "" {
		return "", fmt.Errorf("%w: the file carries no signature", sign.ErrBadSignature)
	}
	key, place := s.signer(signer)
	if key == nil {
		return "", fmt.Errorf("%w: made by key %.16q, and not by %s", sign.ErrBadSignature, signer, s.key.Fingerprint())
	}
	return place, sign.OpenSigned(data, key, v)
}

// signer is the key of that fingerprint, if it counts, with the place it signs for.
func (s *Seal) signer(fingerprint string) (key *sign.PublicKey, place string) {
	if fingerprint == s.key.Fingerprint() {
		return s.key.Public(), s.place
	}
	for _, a := range s.accepted {
		if fingerprint == a.Key.Fingerprint() {
			return a.Key, a.Place
		}
	}
	return nil, ""
}

// Accepts reports whether signatures of a key count here.
func (s *Seal) Accepts(fingerprint string) bool {
	if s == nil {
		return false
	}
	key, _ := s.signer(fingerprint)
	return key != nil
}

// VerifyFrom checks a signature that says which key has made it. The error is
// sign.ErrOtherKey when that does not count here.
func (s *Seal) VerifyFrom(fingerprint, hexHash, sig string) error {
	if s == nil {
		return ErrNoState
	}
	key, _ := s.signer(fingerprint)
	if key == nil {
		return sign.ErrOtherKey
	}
	return key.Verify(hexHash, sig)
}

// Keys are all keys whose state counts, the state key first.
func (s *Seal) Keys() []*sign.PublicKey {
	keys := []*sign.PublicKey{s.key.Public()}
	for _, a := range s.accepted {
		keys = append(keys, a.Key)
	}
	return keys
}

// Own reports whether a document was signed by the state key itself.
func (s *Seal) Own(data []byte) bool { return sign.SignerOf(data) == s.key.Fingerprint() }

// Attach signs a text as what its name says with the state key.
func (s *Seal) Attach(text []byte, ext string, name sign.Name, at time.Time) ([]byte, error) {
	if s == nil {
		return nil, ErrNoState
	}
	return sign.Attach(text, ext, name, s.key, at)
}

// CheckText verifies that a text was signed as what its name says. The errors are
// those of [sign.Check], and sign.ErrOtherKey.
func (s *Seal) CheckText(src []byte, ext string, name sign.Name) error {
	if s == nil {
		return ErrNoState
	}
	sig, rest := sign.Split(src, ext)
	if sig == nil {
		return sign.ErrUnsigned
	}
	key, _ := s.signer(sig.Fingerprint)
	switch {
	case key == nil:
		return sign.ErrOtherKey
	case !sig.Covers(rest, ext):
		return fmt.Errorf("%w: the content was changed after signing", sign.ErrBadSignature)
	}
	if err := sig.VerifyBy(key); err != nil {
		return err
	}
	switch {
	case !sig.Bound():
		return sign.ErrUnbound
	case sig.Name != name:
		return fmt.Errorf("%w: made for %s", sign.ErrOtherItem, sig.Name)
	}
	return nil
}

// Mark is what a database of the place carries, so that no other is taken for it.
func (s *Seal) Mark(database string) string { return s.key.MAC("database", s.place, database) }

// Code authenticates words to this user at this place, in hex. Nobody else can make or
// check it.
func (s *Seal) Code(words ...string) (string, error) {
	if s == nil {
		return "", ErrNoState
	}
	return s.key.MAC(append([]string{"code", s.place}, words...)...), nil
}
