package anthropic

import (
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/tidwall/gjson"
)

// event is what this package reads of an event of an answer. The library's type for them
// has every field of every kind of event, and takes a tenth of a turn to fill. Values are
// read as leniently as the library does: one of another type than the API's is what can be
// made of it, and never fails an answer. Raw numbers are as the provider wrote them.
type event struct {
	kind  string
	index int64

	model    string // of a message_start
	hasUsage bool   // likewise
	usage    usage  // of a message_start or message_delta
	stop     sdk.StopReason
	part     part   // of a content_block_start or content_block_delta
	input    string // of a call that begins, raw
}

// usage are numbers of tokens, raw; empty where there are none.
type usage struct {
	input, output, cacheRead, cacheWrite string
}

// part is a block as it begins, or what is added to one.
type part struct {
	kind                      string
	id, name                  string // of a call
	text, thinking, signature string
	data                      string // of a thought that is encrypted
	json                      string // a part of the input of a call
}

// UnmarshalJSON implements [json.Unmarshaler]: what it is given is JSON.
func (e *event) UnmarshalJSON(text []byte) error {
	root := gjson.ParseBytes(text)
	e.kind, e.index = root.Get("type").String(), root.Get("index").Int()
	switch e.kind {
	case "message_start":
		message := root.Get("message")
		reported := message.Get("usage")
		e.model, e.usage = kept(message.Get("model")), usageOf(reported)
		e.hasUsage = reported.Exists() && reported.Type != gjson.Null
	case "content_block_start":
		block := root.Get("content_block")
		e.part, e.input = partOf(block), block.Get("input").Raw
	case "content_block_delta":
		e.part = partOf(root.Get("delta"))
	case "message_delta":
		e.stop, e.usage = sdk.StopReason(kept(root.Get("delta.stop_reason"))), usageOf(root.Get("usage"))
	}
	return nil
}

func usageOf(reported gjson.Result) usage {
	return usage{
		input: reported.Get("input_tokens").Raw, output: reported.Get("output_tokens").Raw,
		cacheRead: reported.Get("cache_read_input_tokens").Raw, cacheWrite: reported.Get("cache_creation_input_tokens").Raw,
	}
}

func partOf(block gjson.Result) part {
	of := func(name string) string { return kept(block.Get(name)) }
	return part{
		kind: of("type"), id: of("id"), name: of("name"), text: of("text"), thinking: of("thinking"),
		signature: of("signature"), data: of("data"), json: of("partial_json"),
	}
}

// carries tells whether events of a kind carry a part of the answer. "ping" is a sign
// of life, and "message_start" comes before the model has said anything.
func (e event) carries() bool {
	return strings.HasPrefix(e.kind, "content_block_") || e.kind == "message_delta" || e.kind == "message_stop"
}

// said is how many bytes of the answer are in an event.
func (e event) said() int {
	p := e.part
	return len(p.text) + len(p.thinking) + len(p.json) + len(p.signature) + len(p.data) + len(e.input)
}

// kept is a value as a string that does not keep its event.
func kept(value gjson.Result) string { return strings.Clone(value.String()) }
