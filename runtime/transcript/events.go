package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Events reads a transcript from its beginning. A complete line that is not an
// event is yielded as a *[LineError], after which reading goes on; a torn last
// line as a *[TornError] at the end; any other error ends the sequence.
func Events(from records.Source) iter.Seq2[thread.Event, error] {
	return func(yield func(thread.Event, error) bool) {
		f, err := from.Open()
		if err != nil {
			yield(thread.Event{}, err)
			return
		}
		defer func() { _ = f.Close() }()
		eventsOf(f)(yield)
	}
}

// eventsOf is [Events] of an open transcript.
func eventsOf(r io.ReaderAt) iter.Seq2[thread.Event, error] {
	return func(yield func(thread.Event, error) bool) {
		lines := newLineReader(wholeOf(r))
		for {
			e, err := lines.nextEvent()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(e, err) || (err != nil && !isLineError(err)) {
				return
			}
		}
	}
}

// wholeOf reads an open transcript from its beginning.
func wholeOf(r io.ReaderAt) io.Reader { return io.NewSectionReader(r, 0, math.MaxInt64) }

func isLineError(err error) bool {
	_, ok := errors.AsType[*LineError](err)
	return ok
}

func isTorn(err error) bool {
	_, ok := errors.AsType[*TornError](err)
	return ok
}

// Decode reads the payload of an event into one of this package's structs.
func Decode[T any](e thread.Event) (T, error) {
	var payload T
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		return payload, fmt.Errorf("payload of %s %d: %w", e.Type, e.Seq, err)
	}
	return payload, nil
}
