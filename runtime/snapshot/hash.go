package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Hash names a content: its SHA-256 in small hex digits.
type Hash string

// HashOf is the hash of a content.
func HashOf(content []byte) Hash {
	sum := sha256.Sum256(content)
	return Hash(hex.EncodeToString(sum[:]))
}

// ParseHash reads a hash that comes from elsewhere.
func ParseHash(s string) (Hash, error) {
	if !Hash(s).Valid() {
		return "", fmt.Errorf("%.80q is no SHA-256 in hex", s)
	}
	return Hash(s), nil
}

// Valid reports whether h has the form of a hash.
func (h Hash) Valid() bool {
	if len(h) != 2*sha256.Size {
		return false
	}
	for _, c := range []byte(h) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Short is the beginning of a hash, for people.
func (h Hash) Short() string { return string(h[:min(len(h), 12)]) }
