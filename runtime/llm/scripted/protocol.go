package scripted

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
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
		"/v1/responses":        responsesProtocol{},
	}
}

// failedWord is what gateways say of an answer that was broken off.
const failedWord = "error"

// object is a JSON object to be written.
type object = map[string]any

// content is that of a message or of a tool result: a string or a list of
// blocks, of which the texts and the images count.
type content struct {
	text   string
	images []llm.Image
}

// UnmarshalJSON accepts both forms.
func (c *content) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &c.text) == nil {
		return nil
	}
	var blocks []struct {
		Text     *string      `json:"text"`
		Source   *imageSource `json:"source"`    // Anthropic's image
		ImageURL *imageURL    `json:"image_url"` // OpenAI's, as an object or as the URL
	}
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return err
	}
	var texts []string
	for _, block := range blocks {
		switch {
		case block.Text != nil:
			texts = append(texts, *block.Text)
		case block.Source != nil:
			c.images = append(c.images, block.Source.image())
		case block.ImageURL != nil:
			image, err := block.ImageURL.image()
			if err != nil {
				return err
			}
			c.images = append(c.images, image)
		}
	}
	c.text = strings.Join(texts, "\n")
	return nil
}

// imageSource is an image in Anthropic's form.
type imageSource struct {
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"` // base64
}

func (s imageSource) image() llm.Image { return llm.Image{MediaType: s.MediaType, Data: s.Data} }

// imageURL is an image in OpenAI's form, with the bytes in its URL.
type imageURL struct {
	URL string `json:"url"`
}

// UnmarshalJSON accepts the URL alone too, as Responses has it.
func (u *imageURL) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &u.URL) == nil {
		return nil
	}
	type plain imageURL
	return json.Unmarshal(raw, (*plain)(u))
}

func (u imageURL) image() (llm.Image, error) {
	mediaType, encoded, ok := strings.Cut(strings.TrimPrefix(u.URL, "data:"), ";base64,")
	if !ok {
		return llm.Image{}, fmt.Errorf("image_url %.40q is no data URL", u.URL)
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	return llm.Image{MediaType: mediaType, Data: data}, err
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
