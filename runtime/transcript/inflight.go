package transcript

import (
	"errors"
	"io/fs"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// InFlight is a request of which the transcript does not say how it ended.
type InFlight struct {
	CognitionRequest
	Delivered int64     // bytes of the answer that arrived
	Usage     llm.Usage // what the provider had counted by then
}

// LastInFlight returns the request that was on its way when a thread died; nil
// when there was none. Transcripts of before requests were recorded have none.
func LastInFlight(from records.Source) (*InFlight, error) {
	var open *InFlight
	for e, err := range Events(from) {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil && !isLineError(err) && !isTorn(err):
			return nil, err
		case err == nil:
			open = open.after(e)
		}
	}
	return open, nil
}

// after is what is on its way after an event.
func (o *InFlight) after(e thread.Event) *InFlight {
	switch e.Type {
	case thread.EventCognitionRequest:
		request, err := Decode[CognitionRequest](e)
		if err != nil {
			return nil
		}
		return &InFlight{CognitionRequest: request}
	case thread.EventTokenDelta:
		d, err := Decode[TokenDelta](e)
		if o == nil || err != nil || d.Turn != o.Turn {
			return o
		}
		o.Delivered += int64(len(d.Text) + max(0, d.Bytes))
		if d.Usage != nil {
			o.Usage = *d.Usage
		}
	case thread.EventErrorClassified:
		if failed, err := Decode[ErrorClassified](e); err != nil || failed.Category == TornCategory {
			return o // recorded when the file was opened again
		}
		return nil
	case thread.EventCognitionOut, thread.EventMessage: // which breaks a call off, or comes between two
		return nil
	default:
		if terminal(e.Type) {
			return nil
		}
	}
	return o
}
