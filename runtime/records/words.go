package records

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Crash points of compressing a transcript, and of making it plain again.
const (
	CrashDrafted    thread.Crashpoint = "compress.drafted"    // the draft is on disk; the next one begins anew
	CrashCompressed thread.Crashpoint = "compress.compressed" // both are there; the plain one counts
	CrashRemoved    thread.Crashpoint = "compress.removed"    // the plain one is gone
	CrashRestoring  thread.Crashpoint = "restore.drafted"     // the draft is on disk; the compressed one counts
	CrashRestored   thread.Crashpoint = "restore.restored"    // both are there; the plain one counts
)

// Crashpoints lists the crash points of compressing and restoring, in order.
func Crashpoints() []thread.Crashpoint {
	return []thread.Crashpoint{CrashDrafted, CrashCompressed, CrashRemoved, CrashRestoring, CrashRestored}
}

// smallest is how long a transcript is that is worth compressing.
const smallest = 16 << 10

// words is a transcript in a plain or a compressed file. Where both are there the plain
// one counts: it may have been appended to.
type words struct {
	File          // the plain one
	packed string // the compressed one
	crash  func(thread.Crashpoint)
}

// draftEnding is that of files that are not whole yet.
const draftEnding = ".draft"

// tries is how often a file is looked for that may have changed its form meanwhile.
const tries = 3

// Open implements [Source].
func (w words) Open() (r Reader, err error) {
	for range tries {
		if r, err = w.File.Open(); !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
		packed, packedErr := openCompressed(w.packed)
		if packedErr == nil {
			return packed, nil
		}
		if !errors.Is(packedErr, fs.ErrNotExist) {
			return nil, packedErr
		}
	}
	return nil, err
}

// Stamp implements [Source]. That of a compressed transcript has the size of its content.
func (w words) Stamp() (s Stamp, err error) {
	for range tries {
		if s, err = w.File.Stamp(); !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
		packed, packedErr := openCompressed(w.packed)
		if errors.Is(packedErr, fs.ErrNotExist) {
			continue
		}
		if packedErr != nil {
			return s, packedErr
		}
		s, err = File(w.packed).Stamp()
		s.Size = packed.size
		return s, errors.Join(err, packed.Close())
	}
	return s, err
}

// Where implements [Source].
func (w words) Where() string {
	if !exists(w.File.Where()) && exists(w.packed) {
		return w.packed
	}
	return w.File.Where()
}

// Append implements [Transcript]. A compressed transcript becomes a plain one first.
func (w words) Append() (Appender, error) {
	if err := w.restore(); err != nil {
		return nil, fmt.Errorf("restore %s: %w", w.packed, err)
	}
	return w.File.Append()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (w words) restore() error {
	if !exists(w.packed) {
		return nil
	}
	plain := w.File.Where()
	if !exists(plain) {
		stamp, err := File(w.packed).Stamp()
		if err != nil {
			return err
		}
		packed, err := openCompressed(w.packed)
		if err != nil {
			return err
		}
		err = draft(plain+draftEnding, stamp.Changed, func(to io.Writer) error {
			_, err := io.Copy(to, wholeOf(packed))
			return err
		})
		if err = errors.Join(err, packed.Close()); err != nil {
			return err
		}
		w.crash(CrashRestoring)
		if err := errors.Join(os.Rename(plain+draftEnding, plain), syncDir(filepath.Dir(plain))); err != nil {
			return err
		}
		w.crash(CrashRestored)
	}
	return gone(os.Remove(w.packed))
}

// gone is nil for what is not there any more.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// compressible returns the length of a plain transcript that is worth compressing, or 0.
func (w words) compressible() (int64, error) {
	info, err := os.Lstat(w.File.Where())
	if err != nil {
		return 0, gone(err)
	}
	if size := info.Size(); info.Mode().IsRegular() && size >= smallest && size <= maxContentBytes {
		return size, nil
	}
	return 0, nil
}

// compress replaces a plain transcript by a compressed one that was read again.
func (w words) compress() (before, after int64, err error) {
	if size, err := w.compressible(); err != nil || size == 0 {
		return 0, 0, err
	}
	stamp, err := w.File.Stamp()
	if err != nil {
		return 0, 0, err
	}
	from, err := w.File.Open()
	if err != nil {
		return 0, 0, err
	}
	hash := sha256.New()
	part := w.packed + draftEnding
	err = draft(part, stamp.Changed, func(to io.Writer) error {
		_, err := compress(to, io.TeeReader(wholeOf(from), hash))
		return err
	})
	if err = errors.Join(err, from.Close()); err != nil {
		return 0, 0, err
	}
	w.crash(CrashDrafted)
	if after, err = sameContent(part, hash.Sum(nil)); err != nil || after >= stamp.Size {
		return 0, 0, errors.Join(err, os.Remove(part))
	}
	if err := errors.Join(os.Rename(part, w.packed), syncDir(filepath.Dir(w.packed))); err != nil {
		return 0, 0, err
	}
	w.crash(CrashCompressed)
	// Nobody writes to it: the caller has its life. Somebody who did all the same goes before.
	if now, err := w.File.Stamp(); err != nil || !now.Same(stamp) {
		return 0, 0, errors.Join(err, os.Remove(w.packed))
	}
	if err := os.Remove(w.File.Where()); err != nil {
		return 0, 0, err
	}
	w.crash(CrashRemoved)
	return stamp.Size, after, nil
}

// sameContent reads a compressed record whole, holds it against the hash of what it was
// made of, and returns how many bytes its file has.
func sameContent(path string, want []byte) (size int64, err error) {
	packed, err := openCompressed(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, packed.Close()) }()
	hash := sha256.New()
	if _, err := io.Copy(hash, wholeOf(packed)); err != nil {
		return 0, err
	}
	if !bytes.Equal(hash.Sum(nil), want) {
		return 0, damaged("it reads as something else")
	}
	return packed.from.Size()
}
