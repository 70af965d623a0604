package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/recordserver"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// artifacts are those of a thread. One is copied when it is asked for.
type artifacts struct{ *kept }

// Artifacts implements [records.Thread].
func (t *kept) Artifacts() records.Artifacts { return artifacts{t} }

// list are the artifacts that the server has, and those that this process is about to ship.
func (a artifacts) list() ([]recordserver.Artifact, error) {
	list, err := a.Server.Artifacts(context.Background(), a.id)
	if err != nil {
		return nil, err
	}
	if w := a.writing(a.id); w != nil {
		for _, waits := range w.waiting() {
			if !slices.ContainsFunc(list, func(s recordserver.Artifact) bool { return s.Name == waits.Name }) {
				list = append(list, waits)
			}
		}
	}
	return slices.DeleteFunc(list, func(s recordserver.Artifact) bool { return !isArtifact().MatchString(s.Name) }), nil
}

// Load implements [tool.Artifacts].
func (a artifacts) Load(ref string) ([]byte, error) {
	content, missing := a.local.Artifacts().Load(ref)
	if missing == nil {
		return content, nil
	}
	list, err := a.list()
	if err != nil {
		return nil, err
	}
	for _, artifact := range list {
		if ref != "" && strings.HasPrefix(artifact.Name, ref) {
			if err := a.bring(artifact); err != nil {
				return nil, err
			}
			return a.local.Artifacts().Load(ref)
		}
	}
	return nil, missing
}

// bring copies an artifact, unless it is here.
func (a artifacts) bring(artifact recordserver.Artifact) error {
	path := a.copy.artifact(artifact.Name)
	if there(path) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return err
	}
	draft, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(fileMode))
	if err != nil {
		return err
	}
	defer func() { _ = draft.Cleanup() }() // of one that is not whole
	if err := a.Server.Content(context.Background(), artifact.Hash, maxArtifacts, draft); err != nil {
		return fmt.Errorf("artifact %.16s of %s: %w", artifact.Name, a.id, err)
	}
	return draft.CloseAtomicallyReplace()
}

// Write implements [records.Artifacts]. An artifact that the thread's own process keeps is
// shipped with the words that refer to it.
func (a artifacts) Write(hash string, content []byte) (string, error) {
	where, err := a.local.Artifacts().Write(hash, content)
	if err != nil {
		return "", err
	}
	artifact := recordserver.Artifact{Name: filepath.Base(where), Hash: sha256.Sum256(content), Size: int64(len(content))}
	if w := a.writing(a.id); w != nil && w.by.Run == a.run {
		w.keep(artifact)
		return where, nil
	}
	missing, err := a.Server.Missing(context.Background(), []recordserver.Hash{artifact.Hash})
	if err == nil && len(missing) > 0 {
		err = a.Server.Keep(context.Background(), a.writer(), artifact.Hash, bytes.NewReader(content), artifact.Size)
	}
	if err == nil {
		_, err = a.Server.Ship(context.Background(), a.writer(), recordserver.Parcel{Artifacts: []recordserver.Artifact{artifact}})
	}
	return where, err
}

// artifactHere describes an artifact in the folder.
func (t *kept) artifactHere(name string) (found recordserver.Artifact, err error) {
	file, _, err := regular.Follow(t.copy.artifact(name))
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum := sha256.New()
	size, err := io.Copy(sum, io.LimitReader(file, maxArtifacts))
	return recordserver.Artifact{Name: name, Hash: recordserver.Hash(sum.Sum(nil)), Size: size}, err
}

// keepContents gives the server what it lacks of the contents of some artifacts.
func (t *kept) keepContents(by recordserver.Writer, all []recordserver.Artifact) error {
	if len(all) == 0 {
		return nil
	}
	hashes := make([]recordserver.Hash, len(all))
	for i, a := range all {
		hashes[i] = a.Hash
	}
	missing, err := t.Server.Missing(context.Background(), hashes)
	if err != nil {
		return err
	}
	for _, a := range all {
		if !slices.Contains(missing, a.Hash) {
			continue
		}
		file, _, err := regular.Follow(t.copy.artifact(a.Name))
		if err != nil {
			return fmt.Errorf("%w: %w", errHere, err)
		}
		if err := errors.Join(t.Server.Keep(context.Background(), by, a.Hash, file, a.Size), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// List implements [records.Artifacts].
func (a artifacts) List() ([]records.Artifact, error) {
	list, err := a.list()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	all := make([]records.Artifact, len(list))
	for i, s := range list {
		all[i] = records.Artifact{Name: s.Name, Size: s.Size}
	}
	return all, nil
}

// Each implements [records.Artifacts].
func (a artifacts) Each(visit func(name string, open func() (records.Reader, error)) error) error {
	list, err := a.list()
	if err != nil {
		return err
	}
	for _, artifact := range list {
		open := func() (records.Reader, error) {
			if err := a.bring(artifact); err != nil {
				return nil, err
			}
			return records.File(a.copy.artifact(artifact.Name)).Open()
		}
		if err := visit(artifact.Name, open); err != nil {
			return err
		}
	}
	return nil
}

// Remove implements [records.Artifacts].
func (a artifacts) Remove(name string) error {
	if err := a.Server.RemoveArtifact(context.Background(), a.writer(), name); err != nil {
		return err
	}
	if err := a.local.Artifacts().Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ShareWith implements [records.Artifacts].
func (a artifacts) ShareWith(id thread.ID) error {
	if w := a.writing(a.id); w != nil && len(w.waiting()) > 0 {
		if err := w.ship(nil); err != nil {
			return err
		}
	}
	if err := a.Server.Share(context.Background(), a.id, id); err != nil {
		return fmt.Errorf("share the artifacts of %s: %w", a.id, err)
	}
	return nil
}
