package transcript

import (
	"errors"
	"io"
	"math"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Feed reads a transcript while it grows: what was read once is not read again. The
// zero value begins at the beginning. It is used by one goroutine at a time.
type Feed struct {
	begun  bool
	stamp  records.Stamp // of the transcript when it was read last
	offset int64         // behind the last complete line
}

// Read visits what was written since the last call, with the error of a complete line
// that is no event, a *[LineError]. The rest of an unfinished line comes with a later call.
// When it reads from the beginning, because the transcript is another than before, it
// calls anew first. The error of a missing file wraps fs.ErrNotExist.
func (f *Feed) Read(from records.Source, anew func(), visit func(thread.Event, error)) error {
	stamp, err := from.Stamp()
	if err != nil {
		return err
	}
	if f.begun && f.stamp.Same(stamp) {
		return nil
	}
	file, err := from.Open()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	size, err := file.Size()
	if err != nil {
		return err
	}
	if !f.begun || f.stamp.Object != stamp.Object || size < f.offset {
		f.begun, f.offset = true, 0
		anew()
	}
	lines := newLineReader(io.NewSectionReader(file, f.offset, math.MaxInt64-f.offset))
	start := f.offset
	for {
		e, err := lines.nextEvent()
		f.offset = start + lines.offset
		switch {
		case errors.Is(err, io.EOF) || isTorn(err):
			f.stamp = stamp
			return nil
		case err != nil && !isLineError(err):
			return err
		}
		visit(e, err)
	}
}
