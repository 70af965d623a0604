package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// protocol is a vendor's way to ask and to answer.
type protocol interface {
	// decode reads a request.
	decode(body []byte) (*request, error)
	// events are the server-sent events of an answer, in order.
	events(a answer) [][]byte
	// failure is the body of an error.
	failure(typ, code, message string) []byte
	// failureEvent is an error inside an answer.
	failureEvent(typ, code, message string) []byte
}

// protocols are the ones spoken, by path.
func protocols() map[string]protocol {
	return map[string]protocol{
		"/v1/messages":         anthropicProtocol{},
		"/v1/chat/completions": openaiProtocol{},
	}
}

// object is a JSON object to be written.
type object = map[string]any

// contentText is the content of a message or of a tool result: a string or a
// list of blocks, of which the text counts.
type contentText string

// UnmarshalJSON accepts both forms.
func (t *contentText) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, (*string)(t)) == nil {
		return nil
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return err
	}
	var texts []string
	for _, block := range blocks {
		texts = append(texts, block.Text)
	}
	*t = contentText(strings.Join(texts, "\n"))
	return nil
}

// event is one server-sent event; name may be empty.
func event(name string, data any) []byte {
	var out bytes.Buffer
	if name != "" {
		fmt.Fprintf(&out, "event: %s\n", name)
	}
	fmt.Fprintf(&out, "data: %s\n\n", encode(data))
	return out.Bytes()
}

// encode writes objects made in this package, which always encode.
func encode(v any) []byte {
	out, err := json.Marshal(v)
	if err != nil {
		return []byte(`{}`)
	}
	return out
}

// pieceLength is how many bytes of text come in one event.
const pieceLength = 24

// pieces cuts a text as a model would send it, never inside a character.
func pieces(text string) []string {
	var out []string
	for len(text) > pieceLength {
		end := pieceLength
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		if end == 0 { // not UTF-8 at all
			end = pieceLength
		}
		out = append(out, text[:end])
		text = text[end:]
	}
	if text != "" {
		out = append(out, text)
	}
	return out
}
