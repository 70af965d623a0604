package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"unsafe"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// History keeps the messages of a conversation as they were last sent. A
// conversation only grows, and encoding it anew for every call would cost more
// with each turn; so a call encodes what is new, and what went before is put in
// front of it with [Prepend].
//
// Messages are recognised by the array of their blocks, which must not be
// changed once they were sent. A conversation that goes another way is encoded
// from there on. A History may be used by several goroutines.
type History struct {
	mu   sync.Mutex
	sent []llm.Message
	ends []int  // where the text of each ends in text
	text []byte // elements of a JSON array, with commas between
}

// Encode returns messages as the elements of a JSON array. The caller's encode
// turns one message into elements, with commas between; a message that a vendor
// has no place for gives none.
func (h *History) Encode(messages []llm.Message, encode func(llm.Message) ([]byte, error)) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keep(messages)
	for _, m := range messages[len(h.sent):] {
		elements, err := encode(m)
		if err != nil {
			return nil, err
		}
		if len(elements) > 0 && len(h.text) > 0 {
			h.text = append(h.text, ',')
		}
		h.text = append(h.text, elements...)
		h.sent, h.ends = append(h.sent, m), append(h.ends, len(h.text))
	}
	return h.text, nil
}

// keep forgets what messages do not begin with. Calls still use what was
// returned, so text that is cut off is not written over.
func (h *History) keep(messages []llm.Message) {
	same := 0
	for same < min(len(h.sent), len(messages)) && identical(h.sent[same], messages[same]) {
		same++
	}
	if same == len(h.sent) {
		return
	}
	end := 0
	if same > 0 {
		end = h.ends[same-1]
	}
	h.sent, h.ends, h.text = h.sent[:same:same], h.ends[:same:same], h.text[:end:end]
}

func identical(a, b llm.Message) bool {
	return a.Role == b.Role && len(a.Blocks) == len(b.Blocks) && unsafe.SliceData(a.Blocks) == unsafe.SliceData(b.Blocks)
}

// messagesMark is where the messages begin in the body of a request. Both
// vendors' libraries write them before anything of open content, and within
// a string the quotes would be escaped.
var messagesMark = []byte(`"messages":[`)

// Prepend puts elements, as [History.Encode] returns them, before the messages
// in the body of req.
func Prepend(req *http.Request, elements ...[]byte) error {
	elements = slices.DeleteFunc(elements, func(e []byte) bool { return len(e) == 0 })
	if len(elements) == 0 {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return fmt.Errorf("read the encoded request: %w", err)
	}
	before, after, found := bytes.Cut(body, messagesMark)
	if !found {
		return errors.New("the encoded request has no place for messages")
	}
	if after[0] != ']' {
		elements = append(elements, nil) // a comma before those that are there
	}
	SetBody(req, slices.Concat(before, messagesMark, bytes.Join(elements, []byte{','}), after))
	return nil
}

// SetBody replaces the body of req.
func SetBody(req *http.Request, body []byte) {
	req.ContentLength = int64(len(body))
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
}
