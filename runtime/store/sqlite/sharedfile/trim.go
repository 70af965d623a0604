package sharedfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// Trim writes the log of the database into it and makes the log empty, when it is longer
// than so many bytes, and returns by how much it is shorter. SQLite itself only uses a
// log again from its beginning. Somebody who reads meanwhile can keep it as it is.
func (f *File) Trim(ctx context.Context, most int64) (freed int64, err error) {
	before, err := f.logBytes()
	if err != nil || before <= most {
		return 0, err
	}
	err = f.inTurn(ctx, func() error { return nil }, func() error {
		conn, err := f.now.writer.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close() //nolint:errcheck // returns the connection to its pool
		var busy, frames, moved int
		return conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	})
	if err != nil {
		return 0, err
	}
	after, err := f.logBytes()
	return max(0, before-after), err
}

// logBytes is the size of the log; a database that is closed has none.
func (f *File) logBytes() (int64, error) {
	info, err := os.Stat(f.path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
