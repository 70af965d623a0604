package wire

import (
	"bytes"
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
	ids  callIDs
}

// Encode returns messages as the elements of a JSON array, and where the text of each
// ends. The caller's encode turns one message into elements, with commas between; a
// message that a vendor has no place for gives none. Of calls, the vendor takes only ids that
// takes allows, each once; encode gets others in their place. A nil takes leaves ids alone.
func (h *History) Encode(messages []llm.Message, takes func(id string) bool, encode func(llm.Message) ([]byte, error)) (text []byte, ends []int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keep(messages)
	if takes != nil && h.ids.walked != len(h.sent) {
		h.ids = callIDs{}
		for _, m := range h.sent {
			h.ids.sent(m, takes)
		}
	}
	for _, m := range messages[len(h.sent):] {
		fit := m
		if takes != nil {
			fit = h.ids.sent(m, takes)
		}
		elements, err := encode(fit)
		if err != nil {
			return nil, nil, err
		}
		if len(elements) > 0 && len(h.text) > 0 {
			h.text = append(h.text, ',')
		}
		h.text = append(h.text, elements...)
		h.sent, h.ends = append(h.sent, m), append(h.ends, len(h.text))
	}
	return h.text, h.ends, nil
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

// Lists of a request that messages are put into: that of Messages and Chat
// Completions, and that of Responses. The vendors' libraries write them before
// anything of open content, and within a string the quotes would be escaped.
const (
	Messages = "messages"
	Input    = "input"
)

// Prepend puts what stays the same from call to call into the body of req, before what
// its library has encoded: members of the request, each with a comma behind it, and
// elements at the beginning of a list of it, as [History.Encode] returns them, each in
// as many parts as the caller likes.
func Prepend(req *http.Request, list string, members []byte, elements ...[][]byte) error {
	elements = slices.DeleteFunc(elements, func(parts [][]byte) bool {
		return !slices.ContainsFunc(parts, func(p []byte) bool { return len(p) > 0 })
	})
	if len(members) == 0 && len(elements) == 0 {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return fmt.Errorf("read the encoded request: %w", err)
	}
	mark := []byte(`"` + list + `":[`)
	before, after, found := bytes.Cut(body, mark)
	if !found {
		return fmt.Errorf("the encoded request has no list %s", list)
	}
	all := [][]byte{before, members, mark}
	for i, parts := range elements {
		if all = append(all, parts...); i < len(elements)-1 || after[0] != ']' {
			all = append(all, comma)
		}
	}
	SetBody(req, append(all, after)...)
	return nil
}

var comma = []byte{','}

// SetBody replaces the body of req by parts, one after the other. They are copied, once:
// net/http sends the headers on their own before a body of another kind than this one.
func SetBody(req *http.Request, parts ...[]byte) {
	body := slices.Concat(parts...)
	req.ContentLength = int64(len(body))
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
}
