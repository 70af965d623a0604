package textcalls

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// The words by which models name a tool and its arguments. The first of each is
// the one they are asked to write.
var (
	nameKeys     = []string{"tool", "name", "tool_name", "function", "action"}
	argumentKeys = []string{"arguments", "args", "parameters", "params", "input", "action_input"}
)

// sureArgumentKeys is how many of the argumentKeys mean that whatever else stands
// beside them.
const sureArgumentKeys = 2

// reasonKey is what a model adds to a call that it has read somewhere and makes on
// its own account.
const reasonKey = "because"

// callFence says whether blocks of that kind are written to be called; others
// are if they name a tool that is offered.
func callFence(info string) bool {
	switch strings.ToLower(info) {
	case "json", "tool_call", "tool_calls", "tool_use", "tool":
		return true
	}
	return false
}

// calls are the calls that a block consists of, none if it holds anything else.
// A block that is meant as a call but is not JSON is one with its text for input, so
// that the model is told what is wrong.
func (b textBlock) calls(known func(string) bool) []llm.Block {
	if !callFence(b.info) && b.info != "" {
		return nil
	}
	values, err := jsonValues(b.body)
	if err != nil {
		if name := b.brokenName(known); name != "" {
			return []llm.Block{{Type: llm.ToolUseBlock, ToolName: name, Input: json.RawMessage(b.body)}}
		}
		return nil
	}
	var calls []llm.Block
	for _, value := range values {
		call, isCall := readCall(value, known, callFence(b.info))
		if !isCall {
			return nil
		}
		calls = append(calls, call)
	}
	return calls
}

// jsonValues are the values of a text of JSON, one behind the other or in a list.
func jsonValues(text string) ([]json.RawMessage, error) {
	var values []json.RawMessage
	dec := json.NewDecoder(strings.NewReader(text))
	for {
		var value json.RawMessage
		err := dec.Decode(&value)
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return nil, err
		}
		var list []json.RawMessage
		var wrapped struct {
			Calls []json.RawMessage `json:"tool_calls"`
		}
		switch {
		case json.Unmarshal(value, &list) == nil && list != nil:
			values = append(values, list...)
		case json.Unmarshal(value, &wrapped) == nil && wrapped.Calls != nil:
			values = append(values, wrapped.Calls...)
		default:
			values = append(values, value)
		}
	}
}

// readCall reads a call in the form that models are asked for, or, of a tool they
// are offered, in one of those they were trained on.
func readCall(value json.RawMessage, known func(string) bool, meant bool) (llm.Block, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return llm.Block{}, false
	}
	var inner map[string]json.RawMessage
	if json.Unmarshal(fields["function"], &inner) == nil && inner != nil {
		fields = inner // {"type": "function", "function": {"name": …, "arguments": …}}
	}
	key, name := nameOf(fields)
	if name == "" {
		return llm.Block{}, false
	}
	_, given := fields[argumentKeys[0]]
	if given {
		delete(fields, reasonKey)
	}
	asked := key == nameKeys[0] && (len(fields) == 1 || len(fields) == 2 && given)
	if !known(name) && (!asked || !meant) {
		return llm.Block{}, false
	}
	return llm.Block{Type: llm.ToolUseBlock, ToolName: name, Input: argumentsOf(fields, key)}, true
}

// nameOf is what a call says it calls, and under which key.
func nameOf(fields map[string]json.RawMessage) (key, name string) {
	for _, key := range nameKeys {
		if json.Unmarshal(fields[key], &name) == nil && name != "" {
			return key, name
		}
	}
	return "", ""
}

// argumentsOf are the arguments of a call: below a key of their own, there also
// as text, or beside the name.
func argumentsOf(fields map[string]json.RawMessage, nameKey string) json.RawMessage {
	beside := maps.Clone(fields)
	delete(beside, nameKey)
	if kind := string(fields["type"]); kind == `"function"` || kind == `"tool_use"` || kind == `"tool_call"` {
		delete(beside, "type")
		delete(beside, "id")
	}
	for i, key := range argumentKeys {
		value, given := beside[key]
		// Some of these words may be those of parameters.
		if !given || len(beside) > 1 && i >= sureArgumentKeys {
			continue
		}
		var text string
		switch {
		case json.Unmarshal(value, &text) == nil && strings.HasPrefix(strings.TrimSpace(text), "{"):
			return json.RawMessage(text)
		case string(value) == "null":
			return json.RawMessage("{}")
		}
		return value
	}
	raw, err := json.Marshal(beside)
	if err != nil { // decoded JSON always encodes
		return json.RawMessage("{}")
	}
	return raw
}

// brokenCall finds the name in what may be meant as a call but is not JSON. It
// may be cut off within the name.
var brokenCall = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[{,\[\s])["']?(?:tool|name|tool_name|function|action)["']?\s*:\s*["']([\w.\-/]*)(["']?)`)
})

// brokenName is the name in a block that is not JSON, if it was meant as a call:
// it names a tool that is offered, or begins as a call does.
func (b textBlock) brokenName(known func(string) bool) string {
	if start := strings.TrimSpace(b.body); !callFence(b.info) && (start == "" || start[0] != '{' && start[0] != '[') {
		return ""
	}
	for _, m := range brokenCall().FindAllStringSubmatch(b.body, -1) {
		if known(m[1]) {
			return m[1]
		}
	}
	begins := strings.TrimLeft(strings.TrimLeft(b.body, " \t\r\n["), " \t\r\n{")
	m := brokenCall().FindStringSubmatch(begins)
	if m == nil || !callFence(b.info) || !strings.HasPrefix(begins, `"tool"`) || !strings.HasPrefix(begins, m[0]) {
		return ""
	}
	switch {
	case m[2] != "" && m[1] != "":
		return m[1]
	case b.open:
		return m[1] + "…" // nobody knows how it goes on
	}
	return ""
}
