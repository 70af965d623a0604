package sharedfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
)

// Vacuumed says what a vacuum did. Sizes are in bytes, of the file with its log.
type Vacuumed struct {
	Before, After int64
	// Kept says why the file is not as small as it could be; empty: it is.
	Kept string
}

const (
	// vacuumStep is how many pages are given back in one turn, some 4 MB: a writer that
	// comes meanwhile waits for some 20 ms.
	vacuumStep = 1000
	// maxWhole is how much of a file is written anew in one turn while others want to
	// write: to write 64 MB takes half a second on a slow disk, and they wait for ten.
	maxWhole = 64 << 20
	// incremental is a value of PRAGMA auto_vacuum: pages in no use can be given back.
	incremental = 2
)

// Vacuum gives what is in no use back to the operating system, and brings the log into
// the file. Writers have their turn in between. A file of before pages could be given
// back in part is written anew as a whole, unless it is large and others may want it:
// alone says that nobody does.
func (f *File) Vacuum(ctx context.Context, alone bool) (v Vacuumed, err error) {
	v.Before = f.bytes()
	mode, err := f.number(ctx, "auto_vacuum")
	switch {
	case err != nil:
		return v, err
	case mode == incremental:
		err = f.shrink(ctx)
	case v.Before > maxWhole && !alone:
		v.Kept = fmt.Sprintf("it has %d MB and has to be written anew as a whole, which others would wait for", v.Before>>20)
	default:
		err = f.inTurn(ctx, nothing, func() error { return f.run(ctx, "PRAGMA auto_vacuum = INCREMENTAL", "VACUUM") })
	}
	if err != nil {
		return v, err
	}
	if err := f.inTurn(ctx, nothing, func() error { return f.checkpoint(ctx, &v) }); err != nil {
		return v, err
	}
	v.After = f.bytes()
	return v, nil
}

func nothing() error { return nil }

// shrink gives pages back, some in each turn.
func (f *File) shrink(ctx context.Context) error {
	for before := int64(-1); ; {
		free, err := f.number(ctx, "freelist_count")
		if err != nil || free == 0 || free == before {
			return err
		}
		before = free
		err = f.inTurn(ctx, nothing, func() error {
			return f.run(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", vacuumStep))
		})
		if err != nil {
			return err
		}
	}
}

// run runs statements as transactions of their own, each to its end. The caller has the
// turn.
func (f *File) run(ctx context.Context, statements ...string) error {
	inside := context.WithoutCancel(ctx)
	return f.busy.retry(ctx, func() error {
		conn, err := f.writeConn(inside, Relaxed)
		if err != nil {
			return err
		}
		for _, statement := range statements {
			if _, err = f.commit(func() error { return drain(conn.QueryContext(inside, statement)) }); err != nil {
				break
			}
		}
		return errors.Join(err, conn.Close())
	})
}

// drain steps through all rows, with each of which a statement may do a part of its work.
func drain(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return errors.Join(rows.Err(), rows.Close())
}

// checkpoint brings the log into the file and empties it. The caller has the turn.
func (f *File) checkpoint(ctx context.Context, v *Vacuumed) error {
	var busy, log, done int
	err := f.now.writer.QueryRowContext(context.WithoutCancel(ctx), "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &done)
	if err == nil && busy != 0 && v.Kept == "" {
		v.Kept = "somebody reads its log, which is emptied the next time"
	}
	return err
}

func (f *File) number(ctx context.Context, pragma string) (n int64, err error) {
	err = f.Read(ctx, func(r Reader) error { return r.DB.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&n) })
	return n, err
}

// bytes is how much room the file and its log take.
func (f *File) bytes() (sum int64) {
	for _, ending := range []string{"", "-wal"} {
		if info, err := os.Stat(f.path + ending); err == nil {
			sum += info.Size()
		}
	}
	return sum
}
