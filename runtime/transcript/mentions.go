package transcript

import (
	"bytes"
	"errors"
	"io"
	"math"

	"github.com/rye-mcp/rye-mcp/runtime/records"
)

// mentionsBytes is how much of a transcript is looked through in one step.
const mentionsBytes = 1 << 20

// Mentions returns which of some words stand anywhere in a transcript. No word may be
// longer than a kilobyte.
func Mentions(from records.Source, words []string) (map[string]bool, error) {
	f, err := from.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	const overlap = 1 << 10
	found, r, buf, kept := map[string]bool{}, io.NewSectionReader(f, 0, math.MaxInt64), make([]byte, mentionsBytes), 0
	for len(found) < len(words) {
		n, err := io.ReadFull(r, buf[kept:])
		text := buf[:kept+n]
		for _, word := range words {
			if !found[word] && bytes.Contains(text, []byte(word)) {
				found[word] = true
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		kept = copy(buf, text[len(text)-overlap:]) // a word may stand across the border
	}
	return found, nil
}
