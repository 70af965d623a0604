package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// detail is a piece of what a model behind OpenRouter has thought, with whatever its
// vendor puts into it: text, a summary or encrypted data, and a signature. Calls of
// tools go on from thoughts only when these come back as they were. Source: "Preserving
// reasoning" in OpenRouter's guide on reasoning tokens.
type detail map[string]json.RawMessage

// details are those of one answer, put together from pieces.
type details []detail

// grows reports whether a member of a detail comes in pieces, each of which continues
// the one before.
func grows(member string) bool { return member == "text" || member == "summary" || member == "data" }

// sizeOf is how much is said in details, in bytes.
func sizeOf(pieces []detail) (n int) {
	for _, piece := range pieces {
		for member, value := range piece {
			if grows(member) || member == "signature" {
				n += len(value)
			}
		}
	}
	return n
}

// add takes the next pieces. One of the same type and index as the last continues it.
func (d *details) add(pieces []detail) error {
	for _, piece := range pieces {
		if piece == nil { // null
			continue
		}
		last := len(*d) - 1
		if last >= 0 && same((*d)[last], piece, "type") && same((*d)[last], piece, "index") {
			(*d)[last].extend(piece)
			continue
		}
		if last+1 == maxCalls {
			return fmt.Errorf("the answer has more than %d parts of reasoning", maxCalls)
		}
		*d = append(*d, piece)
	}
	return nil
}

func same(a, b detail, member string) bool { return bytes.Equal(a[member], b[member]) }

// extend puts a piece behind what is known.
func (d detail) extend(piece detail) {
	for member, value := range piece {
		if grows(member) {
			value = joined(d[member], value)
		}
		if string(value) != "null" || d[member] == nil {
			d[member] = value
		}
	}
}

// joined is one text of two in JSON; a value that is none is left out. The quotes between them
// are taken away, so that nothing is decoded again with every piece.
func joined(a, b json.RawMessage) json.RawMessage {
	switch isText := func(raw json.RawMessage) bool { return len(raw) > 1 && raw[0] == '"' }; {
	case !isText(a):
		return b
	case !isText(b):
		return a
	}
	return append(a[:len(a)-1], b[1:]...)
}

// signature is all details as they are sent back; empty when there are none.
func (d details) signature() string {
	if len(d) == 0 {
		return ""
	}
	encoded, err := json.Marshal(d)
	if err != nil { // it was JSON before
		return ""
	}
	return string(encoded)
}

// detailsOf are the details in a signature; nil when it is another vendor's.
func detailsOf(signature string) json.RawMessage {
	if raw := json.RawMessage(signature); bytes.HasPrefix(raw, []byte("[{")) && json.Valid(raw) {
		return raw
	}
	return nil
}
