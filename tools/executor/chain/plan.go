package chain

import (
	"encoding/json"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Element is one item of a chain.
type Element struct {
	*resolve.Found
	Doc      *item.ToolDoc
	Verified trust.Decision // that it may be used, and how that is known
	// Named is the executor id by which the element before it named it; that may be an
	// older one. Empty for the tool itself.
	Named string
}

// Chain leads from a tool to what runs it. Every element has been verified.
type Chain struct {
	// Elements begin with the tool and end with the primitive.
	Elements []Element
	// Server is the mcp_server item that the tool names in its configuration; nil
	// for tools of no server.
	Server *Element
	// Config is that of the primitive, of the runtimes and of the tool, each over the
	// one before, as written.
	Config map[string]any
	// Warnings are about what is used although its signature is not good.
	Warnings []string
}

// Tool is the element that was asked for.
func (c *Chain) Tool() *Element { return &c.Elements[0] }

// Primitive is the id of what runs the chain.
func (c *Chain) Primitive() string { return c.Elements[len(c.Elements)-1].ID }

// Plan is what a chain and a call come down to, decoded once.
type Plan struct {
	Chain *Chain
	Call  tool.Env // where and for whom the tool runs
	// Params are the parameters of the call: a JSON object that fits the schema,
	// with its defaults. Where Call.Mask is set they may hold secrets, which must not
	// become arguments or environment of a process.
	Params json.RawMessage
	// Config is that of the chain, as written: [Plan.Fill] and [Plan.Text] put values in.
	Config map[string]any
	// Server is the configuration of Chain.Server, with variables and what is known of
	// the project put in: it is the same for all calls.
	Server map[string]any
	// Environ is the whole environment of a process: KEY=value.
	Environ []string
	// Dir is the working folder of a process.
	Dir string
	// Timeout is that of the configuration; 0 when it names none.
	Timeout time.Duration
	// Warm says that the tool may be kept running between the calls of a thread.
	Warm bool
	// Files are those below the anchor that may be loaded, by absolute path; nil
	// where the runtime does not verify any.
	Files map[string]File
	// Warnings are what the caller is told beside the result.
	Warnings []string
	// Offline says that the command reaches no network; whoever confines it sets that.
	Offline bool
	// Steps say what each element contributed, for trace.
	Steps []Step

	values values
}

// File is a verified file below an anchor.
type File struct {
	SHA256 string `json:"sha256"`
}

// Step says what an element of a chain contributed.
type Step struct {
	tool.Link
	Named       string       `json:"named,omitempty" jsonschema:"the executor id that led here, where it is an older one"`
	Hash        string       `json:"sha256"`
	Verified    trust.Status `json:"verified" jsonschema:"what its signature is worth"`
	By          string       `json:"by,omitempty" jsonschema:"fingerprint of the key that signed it"`
	Shadows     []tool.Link  `json:"shadows,omitempty" jsonschema:"items of the same id that it hides"`
	Config      []string     `json:"config,omitempty" jsonschema:"keys of the configuration that it sets"`
	Environment []string     `json:"environment,omitempty" jsonschema:"names of the variables that it sets or asks for"`
	Interpreter string       `json:"interpreter,omitempty" jsonschema:"the program that it found"`
	Anchor      string       `json:"anchor,omitempty"`
	Settings    []string     `json:"settings,omitempty" jsonschema:"settings files that went into resolved_config"`
}
