package sign

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Generate makes a signing key from 32 bytes of rand and stores it in a user
// space. A key that is there already stays, and the error is ErrKeyExists,
// unless force is set; of several processes that generate at once without force,
// one wins. A crash leaves either a usable key or none.
func Generate(userSpace string, force bool, rand io.Reader) (*Key, error) {
	return generate(filesOf(userSpace), force, rand)
}

func generate(files keyFiles, force bool, rand io.Reader) (*Key, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(rand, seed); err != nil {
		return nil, fmt.Errorf("generate signing key: %w", err)
	}
	private := keyOf(seed)
	key, err := newKey(private)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("encode signing key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: privateLabel, Bytes: der})
	if err := store(files, text, key.public.pem, force); err != nil {
		return nil, err
	}
	return key, nil
}

// store writes the private key before the public one: a private key without its
// counterpart loads, a mismatched pair does not. For the same reason an old
// public key goes first.
func store(files keyFiles, private, public []byte, force bool) error {
	if err := makeKeyDir(files.dir); err != nil {
		return fmt.Errorf("store the key: %w", err)
	}
	publish := os.Link // refuses to replace
	if force {
		if err := os.Remove(files.public); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("replace signing key: %w", err)
		}
		publish = os.Rename
	}
	err := writeFile(files.private, private, 0o600, publish)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s", ErrKeyExists, files.private)
	}
	if err != nil {
		return fmt.Errorf("store the key: %w", err)
	}
	if err := writeFile(files.public, public, 0o644, os.Rename); err != nil {
		return fmt.Errorf("store public key: %w", err)
	}
	return nil
}

func makeKeyDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// writeFile writes a temporary file and makes it durable before publish gives it
// its name, so that the name never stands for half a file.
func writeFile(path string, data []byte, mode fs.FileMode, publish func(old, new string) error) error {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	// After a rename there is nothing left to remove.
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(data)
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err != nil {
		return err
	}
	if err := publish(file.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes a new name in dir durable.
func syncDir(dir string) error {
	handle, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(handle.Sync(), handle.Close())
}
