package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Events reads a transcript from its beginning. A complete line that is not an
// event is yielded as a *[LineError], after which reading goes on; a torn last
// line as a *[TornError] at the end; any other error ends the sequence.
func Events(path string) iter.Seq2[thread.Event, error] {
	return func(yield func(thread.Event, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(thread.Event{}, err)
			return
		}
		defer func() { _ = f.Close() }()

		lines := newLineReader(f)
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
