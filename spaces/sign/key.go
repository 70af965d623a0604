package sign

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	circl "github.com/cloudflare/circl/sign/ed25519"

	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// Labels of the PEM blocks: PKCS #8 (RFC 5958) and SubjectPublicKeyInfo
// (RFC 5280), as RFC 7468 names them.
const (
	privateLabel = "PRIVATE KEY"
	publicLabel  = "PUBLIC KEY"
)

// Key is an Ed25519 signing key. It is safe for concurrent use.
type Key struct {
	private ed25519.PrivateKey
	public  *PublicKey
}

// keyOf is the private key of a seed. circl makes it and signs with it: its tables are data of
// the program, and crypto/ed25519 makes its own in each process before the first use of a
// private key, which takes 2 ms. Keys and signatures are the same, and crypto/ed25519 verifies.
func keyOf(seed []byte) ed25519.PrivateKey { return ed25519.PrivateKey(circl.NewKeyFromSeed(seed)) }

// newKey derives the public half.
func newKey(private ed25519.PrivateKey) (*Key, error) {
	public, err := newPublicKey(private.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, err
	}
	return &Key{private: private, public: public}, nil
}

// Public is the half that verifies.
func (k *Key) Public() *PublicKey { return k.public }

// Fingerprint is that of the public key.
func (k *Key) Fingerprint() string { return k.public.Fingerprint() }

// Sign signs a hash given in hex; the message is that text. The signature is
// base64url with padding.
func (k *Key) Sign(hexHash string) string { return k.sign([]byte(hexHash)) }

func (k *Key) sign(message []byte) string {
	return base64.URLEncoding.EncodeToString(circl.Sign(circl.PrivateKey(k.private), message))
}

// Verify checks a signature of this key, see [PublicKey.Verify].
func (k *Key) Verify(hexHash, sig string) error { return k.public.Verify(hexHash, sig) }

// Load reads the signing key of a user space, the directory that holds .ai.
// Without a key the error is ErrNoKey. A private key that others can read, a
// folder that they can change, and a public key that is not its counterpart are
// refused with the way to mend it.
func Load(userSpace string) (*Key, error) { return load(filesOf(userSpace)) }

// LoadFile reads the private key in a file, wherever an operator has put it. It is refused
// like that of a user space where others could read or replace it.
func LoadFile(path string) (*Key, error) {
	if err := checkFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return loadPrivate(path)
}

func loadPrivate(path string) (*Key, error) {
	text, err := readPrivate(path)
	if err != nil {
		return nil, err
	}
	private, err := parsePrivate(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return newKey(private)
}

func load(files keyFiles) (*Key, error) {
	if err := checkFolder(files.dir); err != nil {
		return nil, err
	}
	key, err := loadPrivate(files.private)
	if err != nil {
		return nil, err
	}
	switch stored, err := regular.ReadFollowed(files.public, maxKeyFile); {
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

// checkFolder refuses a folder in which other accounts could put their own pair
// in the place of the user's.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // said by readPrivate
	}
	if err != nil {
		return fmt.Errorf("read signing key: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("the folder of the signing key, %s, can be changed by others (mode %04o); run: chmod 700 %q", dir, mode, dir)
	}
	return nil
}

// readPrivate refuses to use a key that other accounts of the machine can read.
func readPrivate(path string) ([]byte, error) {
	file, info, err := regular.Follow(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s does not exist; rye-mcp init makes one", ErrNoKey, path)
	}
	if err != nil {
		return nil, fmt.Errorf("read signing key: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
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
	if seed, plain := bytes.CutPrefix(block.Bytes, beforeSeed); plain && len(seed) == ed25519.SeedSize {
		return keyOf(seed), nil
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

// beforeSeed is what an Ed25519 key without attributes begins with in PKCS #8; its seed is
// the rest (RFC 8410, section 7). Such a key is read without crypto/x509, which would have
// crypto/ed25519 make its tables.
var beforeSeed = []byte("\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20")

// matches reports whether text holds this key's public half.
func (k *Key) matches(text []byte) error {
	stored, err := ParsePublic(text)
	if err != nil {
		return err
	}
	if !k.public.Equal(stored) {
		return errors.New("the public key does not belong to the private key")
	}
	return nil
}

// keyFiles are the places of a key pair.
type keyFiles struct {
	dir, private, public string
}

// PublicFile is where a user space keeps the public half of its signing key.
func PublicFile(userSpace string) string { return filesOf(userSpace).public }

func filesOf(userSpace string) keyFiles { return keyFilesIn(userSpace, "signing") }
