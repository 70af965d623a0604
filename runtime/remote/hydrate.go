package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/recordserver"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// maxTranscript bounds what is copied of a transcript: far more than a thread writes.
const maxTranscript = 64 << 30

// copyOf makes the transcript here a copy of the server's. A reader that has it open reads
// on in it, unless something was replaced. The caller has the lock.
func (w words) copyOf(f recordserver.File, n note) (note, error) {
	if f.Size > maxTranscript {
		return n, fmt.Errorf("%s of %s has %d bytes, more than %d", f.Name, w.id, f.Size, int64(maxTranscript))
	}
	path := w.copy.path(f.Name)
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return n, err
	}
	from, inPlace, err := w.base(f, n)
	if err != nil {
		return n, err
	}
	if err := w.fill(f, path, from, inPlace); err != nil {
		return n, err
	}
	w.Crashpoints.At(CrashCopied)
	other := plainName
	if f.Name == plainName {
		other = packedName
	}
	if err := gone(os.Remove(w.copy.path(other))); err != nil {
		return n, err
	}
	n = note{Name: f.Name, Generation: f.Generation, Size: f.Size, Boot: w.Boot}
	return n, w.copy.noteThat(n)
}

// base is how many bytes here are those of the server, and whether the rest can be written
// behind them. A file that a process of this machine may still have open for writing is
// replaced.
func (w words) base(f recordserver.File, n note) (from int64, inPlace bool, err error) {
	path := w.copy.path(f.Name)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, true, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return 0, false, err
	}
	if len(n.Writers) == 0 && n.Name == f.Name && n.Generation == f.Generation && n.Boot == w.Boot && n.Boot != "" && info.Size() >= n.Size {
		return n.Size, true, nil
	}
	from, err = w.same(f)
	return from, len(n.Writers) == 0 && from == info.Size(), err
}

// same is how many bytes here are those that the server has, by the hashes of its chunks.
func (w words) same(f recordserver.File) (same int64, err error) {
	file, _, err := regular.Follow(w.copy.path(f.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // only read
	part := make([]byte, recordserver.ChunkBytes)
	err = w.Server.Sums(context.Background(), w.id, f, func(sum recordserver.Sum) (bool, error) {
		n, err := file.ReadAt(part[:sum.Size], sum.At)
		if n < sum.Size && errors.Is(err, io.EOF) || err == nil && sha256.Sum256(part[:n]) != sum.Hash {
			return false, nil
		}
		same = sum.At + int64(n)
		return true, err
	})
	return same, err
}

// fill writes what the server has behind the first bytes here, in place or in a new file
// that replaces the old one.
func (w words) fill(f recordserver.File, path string, from int64, inPlace bool) (err error) {
	at, flags := path, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW
	if !inPlace {
		at, flags = path+".copy", flags|os.O_TRUNC
	}
	to, err := os.OpenFile(at, flags, fileMode)
	if err != nil {
		return err
	}
	if !inPlace {
		err = beginningOf(path, from, to)
	}
	if err == nil {
		err = w.Server.Chunks(context.Background(), w.id, f, from, func(at int64, part []byte) error {
			_, err := to.WriteAt(part, at)
			return err
		})
	}
	err = errors.Join(err, to.Close())
	if err == nil && !inPlace {
		err = os.Rename(at, path)
	}
	if err != nil && !inPlace {
		err = errors.Join(err, gone(os.Remove(at)))
	}
	return err
}

// beginningOf copies the first bytes of a file.
func beginningOf(path string, n int64, to io.Writer) error {
	if n == 0 {
		return nil
	}
	file, _, err := regular.Follow(path)
	if err != nil {
		return err
	}
	_, err = io.CopyN(to, file, n)
	return errors.Join(err, file.Close())
}
