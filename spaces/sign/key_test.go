package sign_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// A throwaway pair made by OpenSSL 3 with "genpkey -algorithm ed25519" and
// "pkey -pubout", so that the file formats are checked against another program.
const (
	opensslPrivate = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIEtSj88f8RoNAfXOP/25pi8i1Bk4N7hpw4z1svWU+xPM
-----END PRIVATE KEY-----
`
	opensslPublic = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAxqTEDSqwa6HsyzzLmby14HfF8FPHynI81/Hz/1OzWrw=
-----END PUBLIC KEY-----
`
	// sha256sum over the public file, the first 16 digits.
	opensslFingerprint = "c6fcdd042a139020"
)

// seed is a reader of one fixed byte, for keys that tests can tell apart.
type seed byte

func (s seed) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s)
	}
	return len(p), nil
}

// testKey is the key of the OpenSSL pair.
func testKey(t testing.TB) *sign.Key {
	t.Helper()
	space := t.TempDir()
	writePair(t, space, opensslPrivate, opensslPublic, 0o600)
	key, err := sign.Load(space)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func keyDir(space string) string {
	return filepath.Join(space, ".ai", "config", "keys", "signing")
}

func writePair(t testing.TB, space, private, public string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(keyDir(space), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(keyDir(space), "private_key.pem")
	if err := os.WriteFile(path, []byte(private), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	if public == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(keyDir(space), "public_key.pem"), []byte(public), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name            string
		private, public string
		mode            fs.FileMode
		wantErr         string // empty: it loads
	}{
		{name: "OpenSSL pair", private: opensslPrivate, public: opensslPublic, mode: 0o600},
		{name: "without public key", private: opensslPrivate, mode: 0o400},
		{name: "public key with CRLF", private: opensslPrivate, public: strings.ReplaceAll(opensslPublic, "\n", "\r\n"), mode: 0o600},
		{name: "readable by the group", private: opensslPrivate, mode: 0o640, wantErr: "chmod 600"},
		{name: "readable by everyone", private: opensslPrivate, mode: 0o604, wantErr: "chmod 600"},
		{name: "not PEM", private: "hello", mode: 0o600, wantErr: "no PEM block"},
		{name: "not a key", private: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", mode: 0o600, wantErr: "PKCS #8"},
		{name: "public key in the place of the private one", private: opensslPublic, mode: 0o600, wantErr: "no PEM block"},
		{name: "public key of another pair", private: opensslPrivate, mode: 0o600,
			public:  strings.Replace(opensslPublic, "xqTE", "yqTE", 1),
			wantErr: "does not belong"},
		{name: "public key that is none", private: opensslPrivate, public: "x", mode: 0o600, wantErr: "no PEM block"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			space := t.TempDir()
			writePair(t, space, tt.private, tt.public, tt.mode)
			key, err := sign.Load(space)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("error %v, want one with %q", err, tt.wantErr)
				}
				if errors.Is(err, sign.ErrNoKey) {
					t.Error("a key that is refused is not a missing key")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := key.Fingerprint(); got != opensslFingerprint {
				t.Errorf("fingerprint %s, want %s", got, opensslFingerprint)
			}
		})
	}
}

// TestSignsAsTheStandardLibrary: a signature is what crypto/ed25519 makes of the same key.
func TestSignsAsTheStandardLibrary(t *testing.T) {
	t.Parallel()
	space := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.SliceOfN(rapid.Byte(), ed25519.SeedSize, ed25519.SeedSize).Draw(t, "seed")
		message := rapid.String().Draw(t, "message")
		key, err := sign.Generate(space, true, bytes.NewReader(seed))
		if err != nil {
			t.Fatal(err)
		}
		standard := ed25519.NewKeyFromSeed(seed)
		if got, want := key.Sign(message), base64.URLEncoding.EncodeToString(ed25519.Sign(standard, []byte(message))); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		loaded, err := sign.Load(space)
		if err != nil {
			t.Fatal(err)
		}
		if err := loaded.Public().Verify(message, key.Sign(message)); err != nil {
			t.Error(err)
		}
	})
}

// TestFormsOfAPrivateKey: PKCS #8 lets more stand beside a seed, and in the place of an Ed25519
// key.
func TestFormsOfAPrivateKey(t *testing.T) {
	t.Parallel()
	block, _ := pem.Decode([]byte(opensslPrivate))
	public, _ := pem.Decode([]byte(opensslPublic))
	plain := block.Bytes
	// Version 2 of RFC 5958 has the public key, 33 bytes with those of its bits that are unused,
	// behind the seed.
	second := slices.Concat([]byte{0x30, 0x51, 0x02, 0x01, 0x01}, plain[5:], []byte{0x81, 0x21, 0}, public.Bytes[len(public.Bytes)-ed25519.PublicKeySize:])
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ofOther, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		der     []byte
		wantErr string
	}{
		"version 1":         {der: plain},
		"version 2":         {der: second},
		"a byte is missing": {plain[:len(plain)-1], "PKCS #8"},
		"another kind":      {ofOther, "want an Ed25519 key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space := t.TempDir()
			writePair(t, space, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: tt.der})), "", 0o600)
			key, err := sign.Load(space)
			switch {
			case tt.wantErr == "" && err != nil:
				t.Fatal(err)
			case tt.wantErr == "" && key.Fingerprint() != opensslFingerprint:
				t.Errorf("fingerprint %s, want %s", key.Fingerprint(), opensslFingerprint)
			case tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)):
				t.Errorf("error %v, want one with %q", err, tt.wantErr)
			}
		})
	}
}

func TestLoadWithoutKey(t *testing.T) {
	t.Parallel()
	_, err := sign.Load(t.TempDir())
	if !errors.Is(err, sign.ErrNoKey) {
		t.Fatalf("error %v, want ErrNoKey", err)
	}
	if !strings.Contains(err.Error(), "rye-mcp init") {
		t.Errorf("error %q does not say how to get a key", err)
	}
}

func TestLoadRefusesAFolderThatOthersCanChange(t *testing.T) {
	t.Parallel()
	for mode, ok := range map[fs.FileMode]bool{0o700: true, 0o755: true, 0o770: false, 0o702: false} {
		space := t.TempDir()
		writePair(t, space, opensslPrivate, opensslPublic, 0o600)
		if err := os.Chmod(keyDir(space), mode); err != nil {
			t.Fatal(err)
		}
		_, err := sign.Load(space)
		if ok && err != nil {
			t.Errorf("mode %04o: %v", mode, err)
		}
		if !ok && (err == nil || !strings.Contains(err.Error(), "chmod 700")) {
			t.Errorf("mode %04o: error %v, want one with chmod 700", mode, err)
		}
	}
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	space := t.TempDir()
	made, err := sign.Generate(space, false, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	assertMode(t, keyDir(space), 0o700)
	assertMode(t, filepath.Join(keyDir(space), "private_key.pem"), 0o600)
	assertLoads(t, space, made)

	if _, err := sign.Generate(space, false, rand.Reader); !errors.Is(err, sign.ErrKeyExists) {
		t.Fatalf("second key: error %v, want ErrKeyExists", err)
	}
	assertLoads(t, space, made)

	forced, err := sign.Generate(space, true, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if forced.Fingerprint() == made.Fingerprint() {
		t.Error("force made the same key again")
	}
	assertLoads(t, space, forced)
	entries, err := os.ReadDir(keyDir(space))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2 {
		t.Errorf("%d files beside the pair", len(entries)-2)
	}
}

func TestGenerateNarrowsTheFolder(t *testing.T) {
	t.Parallel()
	space := t.TempDir()
	if err := os.MkdirAll(keyDir(space), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := sign.Generate(space, false, rand.Reader); err != nil {
		t.Fatal(err)
	}
	assertMode(t, keyDir(space), 0o700)
}

func TestGenerateAtOnce(t *testing.T) {
	t.Parallel()
	space := t.TempDir()
	keys := make([]*sign.Key, 8)
	errs := make([]error, len(keys))
	var group sync.WaitGroup
	for i := range keys {
		group.Go(func() { keys[i], errs[i] = sign.Generate(space, false, seed(i)) })
	}
	group.Wait()
	var winner *sign.Key
	for i, err := range errs {
		switch {
		case err == nil && winner != nil:
			t.Fatal("two calls made a key")
		case err == nil:
			winner = keys[i]
		case !errors.Is(err, sign.ErrKeyExists):
			t.Errorf("call %d: error %v, want ErrKeyExists", i, err)
		}
	}
	if winner == nil {
		t.Fatal("no call made a key")
	}
	assertLoads(t, space, winner)
}

func TestGenerateNeedsRandomness(t *testing.T) {
	t.Parallel()
	space := t.TempDir()
	if _, err := sign.Generate(space, false, bytes.NewReader(make([]byte, 31))); err == nil {
		t.Fatal("a key was made from 31 bytes")
	}
	if _, err := sign.Load(space); !errors.Is(err, sign.ErrNoKey) {
		t.Errorf("after the failure: %v, want ErrNoKey", err)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	const hash = "5b8f826ea5691cd9baf8da17bc9efff33cdb0f0b65ddf47b6dc9d0f4913e0563"
	sig := key.Sign(hash)
	bare := strings.TrimRight(sig, "=")
	if bare == sig {
		t.Fatal("the signature has no padding")
	}
	tests := []struct {
		name, hash, sig string
		ok              bool
	}{
		{"padded", hash, sig, true},
		{"unpadded", hash, bare, true},
		{"other hash", strings.Replace(hash, "5", "6", 1), sig, false},
		{"empty", hash, "", false},
		{"cut short", hash, bare[:80], false},
		{"standard alphabet", hash, strings.NewReplacer("-", "+", "_", "/").Replace(sig) + "/", false},
		{"line break inside", hash, sig[:10] + "\n" + sig[10:], false},
		{"three pads", hash, bare + "===", false},
		{"other last bits", hash, bare[:len(bare)-1] + "h", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := key.Verify(tt.hash, tt.sig)
			if tt.ok && err != nil {
				t.Error(err)
			}
			if !tt.ok && !errors.Is(err, sign.ErrBadSignature) {
				t.Errorf("error %v, want ErrBadSignature", err)
			}
		})
	}
}

func assertMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		t.Errorf("mode of %s is %04o, want %04o", filepath.Base(path), got, want)
	}
}

func assertLoads(t *testing.T, space string, want *sign.Key) {
	t.Helper()
	got, err := sign.Load(space)
	if err != nil {
		t.Fatal(err)
	}
	if got.Fingerprint() != want.Fingerprint() {
		t.Errorf("stored key %s, want %s", got.Fingerprint(), want.Fingerprint())
	}
	if err := want.Verify("00", got.Sign("00")); err != nil {
		t.Errorf("the stored key is another one: %v", err)
	}
}
