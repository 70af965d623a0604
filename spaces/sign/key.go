package sign

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Labels of the PEM blocks: PKCS #8 (RFC 5958) and SubjectPublicKeyInfo
// (RFC 5280), as RFC 7468 names them.
const (
	privateLabel = "PRIVATE KEY"
	publicLabel  = "PUBLIC KEY"
)

// fingerprintDigits is how many hex digits of the public key's hash name a key.
const fingerprintDigits = 16

// Key is an Ed25519 signing key. It is safe for concurrent use.
type Key struct {
	private     ed25519.PrivateKey
	public      ed25519.PublicKey
	publicPEM   []byte
	fingerprint string
}

// newKey derives everything else from the private key.
func newKey(private ed25519.PrivateKey) (*Key, error) {
	public := private.Public().(ed25519.PublicKey)
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("encode public key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: publicLabel, Bytes: der})
	sum := sha256.Sum256(text)
	return &Key{
		private:     private,
		public:      public,
		publicPEM:   text,
		fingerprint: hex.EncodeToString(sum[:])[:fingerprintDigits],
	}, nil
}

// Fingerprint names the key: the first 16 hex digits of SHA-256 over the public
// key's PEM text.
func (k *Key) Fingerprint() string { return k.fingerprint }

// Sign signs a hash given in hex; the message is that text. The signature is
// base64url with padding.
func (k *Key) Sign(hexHash string) string {
	return base64.URLEncoding.EncodeToString(ed25519.Sign(k.private, []byte(hexHash)))
}

// Verify checks a signature made by [Key.Sign], with or without its padding. Any
// failure is an ErrBadSignature.
func (k *Key) Verify(hexHash, sig string) error {
	raw := strings.TrimSuffix(strings.TrimSuffix(sig, "="), "=")
	// The decoder skips line breaks, which would give one signature many forms.
	if strings.ContainsAny(raw, "\r\n") {
		return fmt.Errorf("%w: line break in base64url", ErrBadSignature)
	}
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(raw)
	if err != nil {
		return fmt.Errorf("%w: not base64url", ErrBadSignature)
	}
	if !ed25519.Verify(k.public, []byte(hexHash), decoded) {
		return fmt.Errorf("%w: it was not made by key %s for this content", ErrBadSignature, k.fingerprint)
	}
	return nil
}

// Load reads the signing key of a user space, the directory that holds .ai.
// Without a key the error is ErrNoKey. A private key that others can read, and
// a public key that is not its counterpart, are refused with the way to mend it.
func Load(userSpace string) (*Key, error) {
	files := filesOf(userSpace)
	text, err := readPrivate(files.private)
	if err != nil {
		return nil, err
	}
	private, err := parsePrivate(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", files.private, err)
	}
	key, err := newKey(private)
	if err != nil {
		return nil, err
	}
	switch stored, err := os.ReadFile(files.public); {
	case errors.Is(err, fs.ErrNotExist):
		// Lost or not yet written; the private key is enough.
	case err != nil:
		return nil, fmt.Errorf("read public key: %w", err)
	default:
		if err := key.matches(stored); err != nil {
			return nil, fmt.Errorf("%s: %w; remove the file, or put back the one that belongs to %s",
				files.public, err, files.private)
		}
	}
	return key, nil
}

// readPrivate refuses to use a key that other accounts of the machine can read.
func readPrivate(path string) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s does not exist; rye-mcp init makes one", ErrNoKey, path)
	}
	if err != nil {
		return nil, fmt.Errorf("read signing key: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read signing key: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("signing key %s can be read by others (mode %04o); run: chmod 600 %q", path, mode, path)
	}
	return io.ReadAll(io.LimitReader(file, maxKeyFile))
}

// maxKeyFile is far above the 119 bytes of an Ed25519 key in PEM.
const maxKeyFile = 64 << 10

func parsePrivate(text []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != privateLabel {
		return nil, fmt.Errorf("no PEM block %q", privateLabel)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("not a PKCS #8 key: %w", err)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a %T, want an Ed25519 key", parsed)
	}
	return private, nil
}

// matches reports whether text holds this key's public half.
func (k *Key) matches(text []byte) error {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != publicLabel {
		return fmt.Errorf("no PEM block %q", publicLabel)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("not a public key: %w", err)
	}
	if !k.public.Equal(parsed) {
		return errors.New("the public key does not belong to the private key")
	}
	return nil
}

// keyFiles are the places of a key pair.
type keyFiles struct {
	dir, private, public string
}

func filesOf(userSpace string) keyFiles {
	dir := filepath.Join(userSpace, ".ai", "config", "keys", "signing")
	return keyFiles{
		dir:     dir,
		private: filepath.Join(dir, "private_key.pem"),
		public:  filepath.Join(dir, "public_key.pem"),
	}
}
