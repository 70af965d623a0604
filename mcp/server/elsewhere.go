package server

import (
	"encoding/json"
	"strings"

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
