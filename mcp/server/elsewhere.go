package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	mcpserver "github.com/mark3labs/mcp-go/server"
)

// Elsewhere is what models know by the names of tools that the server does not offer.
type Elsewhere struct {
	Names []string
	// Instruction tells a model how it is reached, in a few words.
	Instruction string
	// Call is the call that does what one of a name would, with its arguments.
	Call func(name string, args json.RawMessage) string
}

// Reach has clients told of what they reach without tools of its own. It is called
// before the first client comes.
func (s *Server) Reach(e Elsewhere) {
	s.elsewhere = e
	mcpserver.WithInstructions(strings.TrimSpace(instructions) + "\n\n" + e.Instruction)(s.mcp)
}

// nextMembers of an answer say what to call next.
var nextMembers = []string{"next", "hint"}

// withReach has an answer whose next step names what is no tool here say the call that does
// it, as a model follows what it has just read before its instructions.
func (s *Server) withReach(data []byte) []byte {
	if !slices.ContainsFunc(s.elsewhere.Names, func(name string) bool { return bytes.Contains(data, []byte(name)) }) {
		return data
	}
	top, err := parseTree(data)
	if err != nil || top.open != '{' {
		return data
	}
	changed := false
	for _, member := range nextMembers {
		step := top.member(member)
		if step == nil || step.open != '"' {
			continue
		}
		name := s.elsewhere.namedIn(step.raw)
		if name == "" {
			continue
		}
		args := json.RawMessage("{}")
		if id := top.member("thread_id"); id != nil && strings.Contains(step.raw, "this thread_id") {
			args = append(append([]byte(`{"thread_id":`), id.JSON()...), '}')
		}
		step.raw += fmt.Sprintf("; %s is called as %s", name, s.elsewhere.Call(name, args))
		changed = true
	}
	if !changed {
		return data
	}
	return top.JSON()
}

// namedIn is the name that stands first in a text, as a word; empty where none does.
func (e Elsewhere) namedIn(text string) string {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if slices.Contains(e.Names, word) {
			return word
		}
	}
	return ""
}

// maxRepeated is how long arguments may be that a refusal repeats.
const maxRepeated = 2_000

// argumentsOf are the arguments of a call of a tool; an empty object where there are
// none, or where they are too long to be repeated.
func argumentsOf(msg message) json.RawMessage {
	var call struct {
		Params struct {
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	if json.Unmarshal(msg.raw, &call) != nil || len(call.Params.Arguments) > maxRepeated || isNull(call.Params.Arguments) {
		return json.RawMessage("{}")
	}
	return call.Params.Arguments
}
