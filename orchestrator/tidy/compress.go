package tidy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// mostCompressed is how many bytes of transcripts a sweep compresses: some seconds of one
// processor.
const mostCompressed = 256 << 20

// compressJob compresses the transcripts of threads that have ended and were not used
// since a time.
func (t *Tidier) compressJob(ctx context.Context, until time.Time) (string, error) {
	n, part, err := t.compress(ctx, until, mostCompressed)
	if n == 0 {
		return "", err
	}
	return fmt.Sprintf("compressed %d, %d kB became %d kB", n, part.Before>>10, part.After>>10), err
}

// compress compresses transcripts, those of threads first that were not used for the
// longest time, until that were so many bytes. One that cannot be compressed does not keep
// the others.
func (t *Tidier) compress(ctx context.Context, until time.Time, most int64) (n int, part store.Vacuumed, err error) {
	part.Name = "transcripts"
	var failed []error
	var after *thread.Record
	for part.Before < most {
		page, err := t.Threads.Store.Expired(ctx, store.Expiry{UsedUntil: until, After: after})
		if err != nil || len(page) == 0 {
			return n, part, errors.Join(append(failed, err)...)
		}
		after = &page[len(page)-1]
		for _, rec := range page {
			if ctx.Err() != nil || part.Before >= most {
				break
			}
			before, now, err := t.compressOne(ctx, rec.ThreadID)
			if err != nil && len(failed) < mostKept {
				failed = append(failed, err)
			}
			if before > 0 {
				n, part.Before, part.After = n+1, part.Before+before, part.After+now
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	return n, part, errors.Join(failed...)
}

// compressOne compresses the transcript of a thread that has ended. Meanwhile nobody adds
// to it, and nobody removes it.
func (t *Tidier) compressOne(ctx context.Context, id thread.ID) (before, after int64, err error) {
	whole := t.Threads.Records.Of(id).Whole()
	if bytes, err := whole.Compressible(); err != nil || bytes == 0 {
		return 0, 0, err
	}
	_, hold, ok, err := t.Threads.Sweeper.ClaimEnded(ctx, id)
	if !ok {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, hold.Release()) }()
	return whole.Compress()
}
