package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/recordserver"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// whole is all that is kept of a thread.
type whole struct{ *kept }

// Whole implements [records.Thread].
func (t *kept) Whole() records.Whole { return whole{t} }

// Remove implements [records.Whole]. Copies on other machines are found to be of nobody
// there, and go with the next cleanup.
func (w whole) Remove() error {
	release, err := w.lock()
	if err != nil {
		return err
	}
	defer release()
	if err := w.Server.Remove(context.Background(), w.id); err != nil {
		return err
	}
	if err := w.local.Whole().Remove(); err != nil {
		return err
	}
	return w.copy.forget()
}

// Size implements [records.Whole]: what it takes on the server.
func (w whole) Size() (int64, error) { return w.Server.Size(context.Background(), w.id) }

// Bounds of what is compressed, as of files here.
const (
	smallest = 16 << 10
	largest  = 512 << 20
)

// plain is the transcript on the server that is worth compressing.
func (w whole) plain() (f recordserver.File, worth bool, err error) {
	f, _, err = w.words().standing()
	if errors.Is(err, fs.ErrNotExist) {
		return f, false, nil
	}
	return f, err == nil && f.Name == plainName && f.Size >= smallest && f.Size <= largest, err
}

// Compressible implements [records.Whole].
func (w whole) Compressible() (int64, error) {
	f, worth, err := w.plain()
	if !worth || err != nil {
		return 0, err
	}
	return f.Size, nil
}

// draftName is that of a compressed transcript that is not whole yet.
const draftName = packedName + ".draft"

// Compress implements [records.Whole]. The compressed file takes the place of the many
// small chunks that a transcript has on the server.
func (w whole) Compress() (before, after int64, err error) {
	if _, worth, err := w.plain(); !worth || err != nil {
		return 0, 0, err
	}
	release, err := w.lock()
	if err != nil {
		return 0, 0, err
	}
	defer release()
	f, n, err := w.words().copyNow()
	if err != nil || f.Name != plainName {
		return 0, 0, err
	}
	if n.original(f) { // its readers know it by the time of the file here
		stamp, err := w.local.Transcript().Stamp()
		if err != nil {
			return 0, 0, err
		}
		f.Changed = stamp.Changed
	}
	if _, _, err := w.local.Whole().Compress(); err != nil {
		return 0, 0, err
	}
	after, err = w.shipPacked(f)
	if err != nil || after == 0 {
		return 0, 0, err
	}
	return f.Size, after, nil
}

// shipPacked puts the compressed transcript here in the place of the plain one on the
// server, which has not changed since. It returns 0 when there is none here.
func (w whole) shipPacked(plain recordserver.File) (size int64, err error) {
	file, info, err := regular.Follow(w.copy.path(packedName))
	if errors.Is(err, fs.ErrNotExist) { // it would not be smaller
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	stamp, err := w.local.Transcript().Stamp()
	if err != nil || stamp.Size != plain.Size {
		return 0, err
	}
	by, ctx := w.writer(), context.Background()
	if by.Token, err = w.words().token(); err != nil {
		return 0, err
	}
	if err := w.shipDraft(ctx, by, file, info.Size()); err != nil {
		return 0, err
	}
	if err := w.Server.Pack(ctx, by, draftName, packedName, plain); err != nil {
		return 0, err
	}
	f, _, err := w.words().standing()
	if err != nil {
		return 0, err
	}
	return info.Size(), w.copy.noteThat(note{Name: f.Name, Generation: f.Generation, Size: f.Size, Boot: w.Boot})
}

// shipDraft writes a file of so many bytes as the draft of the thread, in the place of one
// that was cut short.
func (w whole) shipDraft(ctx context.Context, by recordserver.Writer, file io.ReaderAt, size int64) error {
	if err := w.Server.Drop(ctx, by, draftName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := w.Server.Take(ctx, by, draftName, nil); err != nil {
		return err
	}
	part := make([]byte, recordserver.ChunkBytes)
	for at := int64(0); at < size; {
		n, err := file.ReadAt(part, at)
		if err != nil && !errors.Is(err, io.EOF) || n == 0 {
			return fmt.Errorf("%w: %w", errHere, err)
		}
		if _, err := w.Server.Ship(ctx, by, recordserver.Parcel{Name: draftName, From: at, Chunks: [][]byte{part[:n]}}); err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}
