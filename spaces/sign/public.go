package sign

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// fingerprintDigits is how many hex digits of a public key's hash name it.
const fingerprintDigits = 16

// PublicKey is an Ed25519 key that verifies. It is safe for concurrent use.
type PublicKey struct {
	key         ed25519.PublicKey
	pem         []byte
	fingerprint string
}

func newPublicKey(key ed25519.PublicKey) (*PublicKey, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode public key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: publicLabel, Bytes: der})
	sum := sha256.Sum256(text)
	return &PublicKey{key: key, pem: text, fingerprint: hex.EncodeToString(sum[:])[:fingerprintDigits]}, nil
}

// ParsePublic reads a public key from PEM text that holds nothing else. Line
// ends and the space around it do not matter: the fingerprint is that of the
// text as [PublicKey.PEM] writes it.
func ParsePublic(text []byte) (*PublicKey, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("-----BEGIN ")) {
		return nil, fmt.Errorf("no PEM block %q", publicLabel)
	}
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, fmt.Errorf("no PEM block %q", publicLabel)
	case strings.HasSuffix(block.Type, privateLabel):
		return nil, errors.New("this is a private key, which nobody else may have; give the public one")
	case block.Type != publicLabel:
		return nil, fmt.Errorf("a PEM block %q, want %q", block.Type, publicLabel)
	case len(bytes.TrimSpace(rest)) > 0 || len(block.Headers) > 0:
		return nil, errors.New("the PEM text holds more than one public key")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("not a public key: %w", err)
	}
	key, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("a %T, want an Ed25519 key", parsed)
	}
	return newPublicKey(key)
}

// Fingerprint names the key: the first 16 hex digits of SHA-256 over its PEM
// text. They tell keys apart; only the key itself verifies.
func (p *PublicKey) Fingerprint() string { return p.fingerprint }

// PEM is the key as SubjectPublicKeyInfo in PEM, with a line break at its end.
func (p *PublicKey) PEM() []byte { return bytes.Clone(p.pem) }

// Equal reports whether both are the same key.
func (p *PublicKey) Equal(q *PublicKey) bool { return p.key.Equal(q.key) }

// Verify checks a signature made by [Key.Sign], with or without its padding. Any
// failure is an ErrBadSignature.
func (p *PublicKey) Verify(hexHash, sig string) error { return p.verify([]byte(hexHash), sig) }

func (p *PublicKey) verify(message []byte, sig string) error {
	raw := strings.TrimSuffix(strings.TrimSuffix(sig, "="), "=")
	// The decoder skips line breaks, which would give one signature many forms.
	if strings.ContainsAny(raw, "\r\n") {
		return fmt.Errorf("%w: line break in base64url", ErrBadSignature)
	}
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(raw)
	if err != nil {
		return fmt.Errorf("%w: not base64url", ErrBadSignature)
	}
	if !ed25519.Verify(p.key, message, decoded) {
		return fmt.Errorf("%w: it was not made by key %s for this content", ErrBadSignature, p.fingerprint)
	}
	return nil
}
