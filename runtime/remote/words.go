package remote

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/recordserver"
)

// words is the transcript of a thread.
type words struct{ *kept }

// Transcript implements [records.Thread].
func (t *kept) Transcript() records.Transcript { return t.words() }

func (t *kept) words() words { return words{t} }

// tries is how often a file is looked at that others change meanwhile.
const tries = 5

// standing is the transcript as the server has it, and whether the one here is the
// original of that. Without one the error wraps fs.ErrNotExist.
func (w words) standing() (f recordserver.File, n note, err error) {
	files, err := w.Server.Files(context.Background(), w.id)
	if err != nil {
		return f, n, err
	}
	for _, file := range files {
		if file.Name == packedName || file.Name == plainName && f.Name == "" { // the packed one counts while it is there
			f = file
		}
	}
	if f.Name == "" {
		return f, n, fmt.Errorf("transcript of %s: %w", w.id, fs.ErrNotExist)
	}
	return f, w.copy.note(), nil
}

// original reports whether the transcript here is what the server gets.
func (n note) original(f recordserver.File) bool { return f.Name == plainName && n.wrote(f.Writer) }

// current reports whether the transcript here is a copy of all that the server has.
func (w words) current(f recordserver.File, n note) bool {
	info, err := os.Lstat(w.copy.path(f.Name))
	return err == nil && len(n.Writers) == 0 && n.Name == f.Name && n.Generation == f.Generation && n.Size >= f.Size &&
		info.Size() >= n.Size && n.Boot == w.Boot && n.Boot != ""
}

// bring makes the transcript here what the server has, unless it is the original.
func (w words) bring() error {
	if w.writing(w.id) != nil {
		return nil
	}
	f, n, err := w.standing()
	if err != nil || n.original(f) || w.current(f, n) {
		return err
	}
	release, err := w.lock()
	if err != nil {
		return err
	}
	defer release()
	_, _, err = w.copyNow()
	return err
}

// copyNow is bring for a caller that has the lock. It returns what the server has, and what
// is here.
func (w words) copyNow() (f recordserver.File, n note, err error) {
	for range tries {
		if f, n, err = w.standing(); err != nil || n.original(f) || w.current(f, n) {
			return f, n, err
		}
		if n, err = w.copyOf(f, n); !errors.Is(err, recordserver.ErrChanged) {
			return f, n, err
		}
	}
	return f, n, err
}

// Open implements [records.Source].
func (w words) Open() (records.Reader, error) {
	if err := w.bring(); err != nil {
		return nil, err
	}
	return w.local.Transcript().Open()
}

// Stamp implements [records.Source].
func (w words) Stamp() (records.Stamp, error) {
	if w.writing(w.id) != nil {
		return w.here()
	}
	f, n, err := w.standing()
	if err != nil {
		return records.Stamp{}, err
	}
	if n.original(f) {
		return w.here()
	}
	return w.stamp(f), nil
}

// here is the stamp of the transcript here, with the time as exact as the server's.
func (w words) here() (records.Stamp, error) {
	s, err := w.local.Transcript().Stamp()
	s.Changed = s.Changed.Truncate(time.Millisecond)
	return s, err
}

// Where implements [records.Source].
func (w words) Where() string { return w.local.Transcript().Where() }

// Append implements [records.Transcript]. From now on this process alone writes the
// transcript, on any machine.
func (w words) Append() (records.Appender, error) {
	release, err := w.lock()
	if err != nil {
		return nil, err
	}
	defer release()
	token, err := w.token()
	if err != nil {
		return nil, err
	}
	for range tries {
		a, err := w.take(token)
		if !errors.Is(err, recordserver.ErrChanged) {
			return a, err
		}
	}
	return nil, fmt.Errorf("transcript of %s: others begin to write it", w.id)
}

// token names this writing.
func (w words) token() (string, error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	return string(w.run) + "/" + hex.EncodeToString(random[:]), nil
}

// take makes this process the writer of the transcript, with all that the server has of
// it. The note is true at each step: an original stays one until somebody else has written.
func (w words) take(token string) (records.Appender, error) {
	by := w.writer()
	by.Token = token
	f, n, err := w.copyNow()
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if !exists { // the copy here is of a thread that was deleted elsewhere
		if err := errors.Join(gone(os.Remove(w.copy.path(plainName))), gone(os.Remove(w.copy.path(packedName)))); err != nil {
			return nil, err
		}
		n = note{}
	}
	original := exists && n.original(f)
	if original || !exists {
		if err := w.copy.noteThat(n.with(token)); err != nil {
			return nil, err
		}
	}
	var before *recordserver.File
	if exists && f.Name == plainName {
		before = &f
	}
	if err := w.Server.Take(context.Background(), by, plainName, before); err != nil {
		return nil, err
	}
	w.Crashpoints.At(CrashTaken)
	a, err := w.begin(by, f, original)
	if err == nil && exists && !original {
		err = w.copy.noteThat(note{}.with(token))
	}
	if err != nil && a != nil {
		err = errors.Join(err, a.Close())
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// begin opens the transcript here, to be shipped.
func (w words) begin(by recordserver.Writer, f recordserver.File, original bool) (*appender, error) {
	file, err := w.local.Transcript().Append()
	if err != nil {
		return nil, err
	}
	a := &appender{Appender: file, of: w.kept, by: by}
	switch {
	case f.Name == packedName: // it is a plain one again
		a.drop = packedName
	case original:
		a.shipped, err = w.same(f)
		if err == nil {
			err = a.unshipped()
		}
	default:
		a.shipped = f.Size
	}
	if err == nil && a.drop != "" {
		err = a.ship(nil)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	w.mu.Lock()
	w.open[w.id] = a
	w.mu.Unlock()
	return a, nil
}
