package anthropic

import (
	"encoding/json"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
)

// byLibrary is an event as the library reads it.
func byLibrary(text []byte) (e event, err error) {
	var read sdk.MessageStreamEventUnion
	err = json.Unmarshal(text, &read)
	e.kind, e.index = read.Type, read.Index
	switch block, delta := read.ContentBlock, read.Delta; read.Type {
	case "message_start":
		u := read.Message.Usage.JSON
		e.model, e.hasUsage = read.Message.Model, read.Message.JSON.Usage.Valid()
		e.usage = usage{u.InputTokens.Raw(), u.OutputTokens.Raw(), u.CacheReadInputTokens.Raw(), u.CacheCreationInputTokens.Raw()}
	case "content_block_start":
		e.part = part{
			kind: block.Type, id: block.ID, name: block.Name, text: block.Text, thinking: block.Thinking,
			signature: block.Signature, data: block.Data,
		}
		e.input = block.JSON.Input.Raw()
	case "content_block_delta":
		e.part = part{kind: delta.Type, text: delta.Text, thinking: delta.Thinking, signature: delta.Signature, json: delta.PartialJSON}
	case "message_delta":
		u := read.Usage.JSON
		e.stop = delta.StopReason
		e.usage = usage{u.InputTokens.Raw(), u.OutputTokens.Raw(), u.CacheReadInputTokens.Raw(), u.CacheCreationInputTokens.Raw()}
	}
	return e, err
}

// FuzzEvent: what this package reads of an event is what the library reads, of those that
// are not as the API documents them, too.
func FuzzEvent(f *testing.F) {
	for _, text := range []string{
		`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":5,"output_tokens":1,"cache_read_input_tokens":7,"cache_creation_input_tokens":0}}}`,
		`{"type":"message_start","message":{"model":5,"usage":{"input_tokens":"5","output_tokens":null}}}`,
		`{"type":"message_start","message":{"model":null,"usage":null}}`,
		`{"type":"message_start","message":{"model":"m","usage":"x"}}`,
		`{"type":"message_start","message":[]}`,
		`{"TYPE":"message_start","Message":{"Model":"m"}}`,
		`{"type":"content_block_start","index":"1","content_block":{"type":"text","text":5}}`,
		`{"type":"content_block_start","index":1.5,"content_block":{"type":"text","text":["x"]}}`,
		`{"type":"content_block_start","index":null,"content_block":"x"}`,
		`{"type":"content_block_start","index":1e0,"content_block":{"type":"thinking","thinking":"a","signature":null}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":7,"name":"n\n","input":{ "a" : [1] }}}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"redacted_thinking","data":"xyz"}}`,
		`{"type":"content_block_start","type":"ping","index":1}`,
		`{"type":"content_block_delta","index":99999999999999999999,"delta":{"type":"text_delta","text":"a\ud800é"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`,
		`{"type":"message_delta","delta":{"stop_reason":5},"usage":[]}`,
		`{"type":"message_stop"}`, `{"type":5}`, `[]`, `null`, `"x"`, `5`, `{`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got event
		err := json.Unmarshal(text, &got)
		want, wantErr := byLibrary(text)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, by the library %v", text, err, wantErr)
		}
		if err == nil && got != want {
			t.Errorf("%q: %+v, by the library %+v", text, got, want)
		}
	})
}
