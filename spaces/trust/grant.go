package trust

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Grant makes a key trusted.
type Grant struct {
	Document *Document // see [ParseKey]; its owner must be set
	By       *sign.Key // the own key, which vouches
	At       time.Time
}

// Store writes the signed document into a space, whose folder is dir, in place of
// an earlier one about the same key, and returns its path. In the user's space
// only the user can read it; a project's is for everybody who has the project. A
// crash leaves the earlier document or the new one.
func (g Grant) Store(dir string, space item.Space) (string, error) {
	if space == item.System {
		return "", errors.New("trust key: the system space is part of the program")
	}
	data, err := g.encode()
	if err != nil {
		return "", fmt.Errorf("trust key: %w", err)
	}
	name := g.Document.Fingerprint + ".toml"
	if err := storeDocument(space, dir, name, data); err != nil {
		return "", fmt.Errorf("trust key: %w", err)
	}
	return filepath.Join(dir, ".ai", filepath.FromSlash(trustedDir), name), nil
}

// Renew signs the document of an entry anew that By signed with an older
// signature, and leaves its content as it is.
func Renew(dir string, e Entry, by *sign.Key, at time.Time) error {
	root, err := openTrusted(e.Space, dir)
	if err != nil {
		return fmt.Errorf("renew trusted key: %w", err)
	}
	defer func() { _ = root.Close() }() // the file is synced by then
	name := e.Fingerprint + ".toml"
	data, err := readDocument(root, name, e.Path)
	if err != nil {
		return fmt.Errorf("renew trusted key: %w", err)
	}
	doc, _, err := ParseDocument(data)
	if err != nil {
		return fmt.Errorf("renew trusted key: %s: %w", e.Path, err)
	}
	as := documentFor(doc.Fingerprint)
	if err := sign.Check(data, ".toml", as, by); !errors.Is(err, sign.ErrUnbound) || doc.Fingerprint != e.Fingerprint {
		return fmt.Errorf("renew trusted key: %s does not carry an older signature of yours any more", e.Path)
	}
	if data, err = sign.Attach(data, ".toml", as, by, at); err != nil {
		return fmt.Errorf("renew trusted key: %w", err)
	}
	info, err := root.Stat(name)
	if err == nil {
		err = replaceFile(root, name, data, info.Mode().Perm())
	}
	if err != nil {
		return fmt.Errorf("renew trusted key: %w", err)
	}
	return nil
}

// encode gives the signed text, and makes sure that it will be read again.
func (g Grant) encode() ([]byte, error) {
	text, err := g.Document.encode()
	if err != nil {
		return nil, err
	}
	data, err := sign.Attach(text, ".toml", documentFor(g.Document.Fingerprint), g.By, g.At)
	if err != nil {
		return nil, err
	}
	if _, _, err := ParseDocument(data); err != nil {
		return nil, err
	}
	return data, nil
}

func storeDocument(space item.Space, dir, name string, data []byte) error {
	var folderMode, fileMode fs.FileMode = 0o755, 0o644
	if space == item.User {
		folderMode, fileMode = 0o700, 0o600
	}
	// No link leads the writing out of .ai.
	root, err := makeAI(space, dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // the file is synced by then
	if err := root.MkdirAll(path.Dir(trustedDir), 0o755); err != nil {
		return err
	}
	if err := root.Mkdir(trustedDir, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := root.Stat(trustedDir)
	if err == nil {
		err = checkMode(filepath.Join(root.Name(), filepath.FromSlash(trustedDir)), info)
	}
	if err != nil {
		return err
	}
	return replaceFile(root, path.Join(trustedDir, name), data, fileMode)
}

// replaceFile makes the new content durable before it gets its name.
func replaceFile(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	draft := path.Join(path.Dir(name), "."+rand.Text())
	file, err := root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close()); err == nil {
		err = root.Rename(draft, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(draft))
	}
	folder, err := root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
