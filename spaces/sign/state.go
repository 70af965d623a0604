package sign

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"
)

// A user space keeps two keys. The item key signs what its user answers for; the
// state key signs what threads leave behind. That is made when the first thread is
// started and never replaced, so that a new item key makes nobody's threads
// strangers.

// LoadState reads the state key of a user space, as [Load] does the item key.
func LoadState(userSpace string) (*Key, error) { return load(stateFiles(userSpace)) }

// EnsureState reads the state key of a user space, and makes it from 32 bytes of
// random when there is none. Of several processes one makes it.
func EnsureState(userSpace string, random io.Reader) (*Key, error) {
	key, err := LoadState(userSpace)
	if !errors.Is(err, ErrNoKey) {
		return key, err
	}
	if random == nil {
		random = rand.Reader
	}
	key, err = generate(stateFiles(userSpace), false, random)
	if errors.Is(err, ErrKeyExists) { // another process was first
		return LoadState(userSpace)
	}
	return key, err
}

// StateFolder is where a user space keeps its state key.
func StateFolder(userSpace string) string { return stateFiles(userSpace).dir }

// StateKeyFile is the file of the key itself.
func StateKeyFile(userSpace string) string { return stateFiles(userSpace).private }

func stateFiles(userSpace string) keyFiles { return keyFilesIn(userSpace, "state") }

func keyFilesIn(userSpace, name string) keyFiles {
	dir := filepath.Join(userSpace, ".ai", "config", "keys", name)
	return keyFiles{
		dir:     dir,
		private: filepath.Join(dir, "private_key.pem"),
		public:  filepath.Join(dir, "public_key.pem"),
	}
}

// macPurpose keeps what [Key.MAC] makes apart from every other use of the key.
const macPurpose = "rye-mcp/mac/1"

// MAC authenticates words to the holder of the private key, in hex. Unlike a
// signature nobody else can check it, and unlike a signature it is short and cheap.
func (k *Key) MAC(words ...string) string {
	secret := sha256.Sum256(append([]byte(macPurpose), k.private.Seed()...))
	mac := hmac.New(sha256.New, secret[:])
	for _, word := range words {
		sum := sha256.Sum256([]byte(word))
		mac.Write(sum[:])
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// ErrOtherKey says that a signature was made by another key than those that count.
var ErrOtherKey = errors.New("signed by another key")

// VerifyFrom checks a signature that says which key has made it. The error is
// ErrOtherKey when that is not this one.
func (p *PublicKey) VerifyFrom(fingerprint, hexHash, sig string) error {
	if fingerprint != p.fingerprint {
		return ErrOtherKey
	}
	return p.Verify(hexHash, sig)
}

// VerifyFrom is [PublicKey.VerifyFrom] of the public half.
func (k *Key) VerifyFrom(fingerprint, hexHash, sig string) error {
	return k.public.VerifyFrom(fingerprint, hexHash, sig)
}
