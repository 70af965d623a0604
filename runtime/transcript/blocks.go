package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// Blocks are the blocks of a message in the form the transcript keeps them,
// which preserves the input of a tool call to the byte even when it is not
// valid JSON. Text that is not UTF-8 cannot be kept in JSON; each invalid byte
// becomes U+FFFD, as it does on the way to a provider. Images are kept by
// reference: their bytes lie with the thread's artifacts.
type Blocks []llm.Block

// storedBlock is llm.Block with an input that can always be encoded.
type storedBlock struct {
	Type       llm.BlockType `json:"type"`
	Text       string        `json:"text,omitempty"`
	Signature  string        `json:"signature,omitempty"`
	By         string        `json:"by,omitempty"`
	ToolCallID string        `json:"tool_call_id,omitempty"`
	ToolName   string        `json:"tool_name,omitempty"`
	Input      Input         `json:"input,omitempty"`
	IsError    bool          `json:"is_error,omitempty"`
	Images     []llm.Image   `json:"images,omitempty"` // by reference
	Content    *llm.Content  `json:"content,omitempty"`
}

// MarshalJSON writes a list of blocks; nil is an empty list.
func (b Blocks) MarshalJSON() ([]byte, error) {
	stored := make([]storedBlock, len(b))
	for i, block := range b {
		stored[i] = storedBlock{
			Type: block.Type, Text: block.Text, Signature: block.Signature, By: block.By,
			ToolCallID: block.ToolCallID, ToolName: block.ToolName,
			Input: Input(block.Input), IsError: block.IsError, Images: block.Images,
			Content: block.Content,
		}
	}
	return encode(stored)
}

// UnmarshalJSON reads what MarshalJSON wrote, block by block: a list of the stored form, too,
// would take twice the memory.
func (b *Blocks) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	begin, err := d.Token()
	if err != nil {
		return err
	}
	*b = Blocks{}
	if begin == nil {
		return nil
	}
	if begin != json.Delim('[') {
		return errNoBlocks
	}
	for d.More() {
		var s storedBlock
		if err := d.Decode(&s); err != nil {
			return err
		}
		*b = append(*b, llm.Block{
			Type: s.Type, Text: s.Text, Signature: s.Signature, By: s.By,
			ToolCallID: s.ToolCallID, ToolName: s.ToolName,
			Input: json.RawMessage(s.Input), IsError: s.IsError, Images: s.Images,
			Content: s.Content,
		})
	}
	return nil
}

var errNoBlocks = errors.New("blocks are a list")

// Input is the input of a tool call as the model wrote it. A JSON object
// without white space around its parts stands in the transcript as it is;
// everything else, broken JSON too, as a string of the exact text.
type Input []byte

// MarshalJSON implements the form described at [Input].
func (in Input) MarshalJSON() ([]byte, error) {
	if in.storedAsIs() {
		return in, nil
	}
	return encode(string(in))
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (in *Input) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*in = Input(text)
		return nil
	}
	*in = bytes.Clone(data)
	return nil
}

// storedAsIs reports whether the encoder leaves the bytes alone: it would
// remove white space.
func (in Input) storedAsIs() bool {
	if len(in) == 0 || in[0] != '{' || !utf8.Valid(in) {
		return false
	}
	var compact bytes.Buffer
	return json.Compact(&compact, in) == nil && bytes.Equal(compact.Bytes(), in)
}
