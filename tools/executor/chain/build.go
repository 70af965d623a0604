package chain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxElements is how long a chain may be, the tool and the primitive included.
const maxElements = 10

// Builder makes chains and plans in one project. It is safe for concurrent use.
type Builder struct {
	Resolver *resolve.Resolver
	Trust    *trust.Gate
	World    World

	docs     cache[*item.ToolDoc] // of items, by extension and hash
	specs    cache[spec]          // likewise
	versions cache[string]        // of programs, by path, size and time
}

// Build follows the executor ids from a tool to its primitive. Every element is
// verified now: a signature that was good at the last call says nothing of this one.
// A fault of the chain comes back as a *tool.Fault, or as the error of the
// resolver or of the gate, about the element that it is about.
func (b *Builder) Build(found *resolve.Found) (*Chain, error) {
	return b.build(found, b.Trust.Once(b.Trust.Settings))
}

func (b *Builder) build(found *resolve.Found, gate *trust.Gate) (*Chain, error) {
	c := &Chain{}
	next, named := found, ""
	for {
		e, err := b.element(gate, next, named)
		if err != nil {
			return nil, c.located(err)
		}
		if err := c.add(e); err != nil {
			return nil, err
		}
		if err := notTool(e); err != nil && len(c.Elements) == 1 {
			return nil, err
		}
		if isPrimitive(e) {
			break
		}
		if next, named, err = b.executor(c, e); err != nil {
			return nil, err
		}
	}
	if err := b.findServer(gate, c); err != nil {
		return nil, err
	}
	return c, b.configure(c)
}

// element verifies an item before anything that it says is believed.
func (b *Builder) element(gate *trust.Gate, found *resolve.Found, named string) (Element, error) {
	verified, err := gate.Check(trust.SubjectOf(found))
	if err != nil {
		return Element{}, err
	}
	doc, err := b.doc(found)
	return Element{Found: found, Doc: doc, Verified: verified, Named: named}, err
}

func (b *Builder) doc(found *resolve.Found) (*item.ToolDoc, error) {
	return b.docs.get(found.Ext+found.Hash, found.Tool)
}

// add appends an element, unless the chain would be too long or a circle.
func (c *Chain) add(e Element) error {
	c.Elements = append(c.Elements, e)
	if e.Verified.Warning != "" {
		c.Warnings = append(c.Warnings, e.Verified.Warning)
	}
	if slices.ContainsFunc(c.Elements[:len(c.Elements)-1], func(before Element) bool { return before.Path == e.Path }) {
		return c.fault("the executors of %s lead in a circle: %s", c.Tool().ID, c)
	}
	if len(c.Elements) > maxElements {
		return c.fault("the chain of executors of %s is longer than %d: %s", c.Tool().ID, maxElements, c)
	}
	return nil
}

// String is the chain as ids with arrows between them.
func (c *Chain) String() string {
	ids := make([]string, len(c.Elements))
	for i, e := range c.Elements {
		ids[i] = e.ID
	}
	return strings.Join(ids, " → ")
}

func (c *Chain) fault(format string, args ...any) *tool.Fault {
	return tool.Faultf(tool.CodeInvalidItem, format, args...).With("path", c.Elements[len(c.Elements)-1].Path).
		WithHint("Correct executor_id in the item, or use another tool.")
}

// located says of an error about an element which tool needs it.
func (c *Chain) located(err error) error {
	if len(c.Elements) == 0 {
		return err
	}
	return fmt.Errorf("the tool %s needs it: %w", c.Tool().ID, err)
}

func isPrimitive(e Element) bool {
	return e.Space == item.System && slices.Contains(Primitives(), e.ID)
}

// executor finds what runs an element.
func (b *Builder) executor(c *Chain, e Element) (found *resolve.Found, named string, err error) {
	written := e.Doc.ExecutorID
	if written == "" && len(c.Elements) == 1 {
		written = executorOf(e)
	}
	if written == "" {
		return nil, "", unrunnable(c, e)
	}
	id := Meant(written)
	found, err = b.in(e.Space, id).Find(item.Tool, id)
	if missing := new(resolve.NotFoundError); errors.As(err, &missing) {
		for _, full := range fullIDs(written) {
			if found, err := b.in(item.System, full).Find(item.Tool, full); err == nil {
				return found, written, nil
			}
		}
		return nil, "", unknownExecutor(e, written, missing)
	}
	if id == written {
		written = ""
	}
	return found, written, err
}

// in is where the executors of the items of a space are looked for: a space never
// depends on one that takes precedence over it, and a primitive is always ours.
func (b *Builder) in(space item.Space, id string) *resolve.Resolver {
	roots := b.Resolver.Roots()
	if space != item.Project {
		roots.Project = ""
	}
	if space == item.System || slices.Contains(Primitives(), id) {
		roots.Project, roots.User = "", ""
	}
	return resolve.New(roots)
}

// unrunnable is the refusal of an item at which a chain ends that is no primitive.
func unrunnable(c *Chain, e Element) error {
	f := tool.Faultf(tool.CodeUnsupported, "%s names no executor_id, so nothing runs it", e.ID)
	switch e.Doc.ToolType {
	case TypePrimitive:
		f = tool.Faultf(tool.CodeUnsupported, "%s says that it is a primitive; those are %s, which are part of the program", e.ID, strings.Join(Primitives(), ", "))
	case TypeServer:
		f = tool.Faultf(tool.CodeUnsupported, "%s is an MCP server and no tool; tools name it as config.server", e.ID)
	}
	if len(c.Elements) > 1 {
		f.Message += "; " + c.Tool().ID + " needs it"
	}
	return f.With("path", e.Path).WithHint("rye_search with scope tool lists tools that can be run.")
}

// unknownExecutor is the refusal of an executor that no space has in which it may be
// looked for.
func unknownExecutor(e Element, written string, missing *resolve.NotFoundError) error {
	where := map[item.Space]string{item.Project: "the project, user or system space", item.User: "the user or system space", item.System: "the system space"}[e.Space]
	f := tool.Faultf(tool.CodeUnsupported, "%s names the executor %s, which is not in %s", e.ID, item.Shown(written), where).
		With("executor_id", written).With("path", e.Path).
		WithHint("rye_search with scope tool.rye.core.runtimes lists the executors.")
	if e.Space == item.User {
		f.Message += " (a tool of the user does not depend on a project)"
	}
	if len(missing.Nearest) > 0 {
		f = f.With("nearest_ids", missing.Nearest)
	}
	return f
}

// executorOf is what runs a program that names no executor: the runtime of its
// language.
func executorOf(e Element) string {
	switch e.Ext {
	case ".py":
		if definesExecute(e.Content) {
			return "rye/core/runtimes/python/function"
		}
		return "rye/core/runtimes/python/script"
	case ".sh":
		return "rye/core/runtimes/bash/bash"
	case ".js", ".mjs", ".cjs", ".ts":
		return "rye/core/runtimes/node/node"
	}
	return ""
}

// definesExecute reports whether a Python file has a function execute at its top.
func definesExecute(src []byte) bool {
	for line := range strings.Lines(string(src)) {
		line = strings.TrimPrefix(line, "async ")
		if rest, ok := strings.CutPrefix(line, "def execute"); ok && strings.HasPrefix(strings.TrimLeft(rest, " "), "(") {
			return true
		}
	}
	return false
}

// findServer finds the mcp_server item that a tool of the MCP primitive names.
func (b *Builder) findServer(gate *trust.Gate, c *Chain) error {
	if c.Primitive() != MCP {
		return nil
	}
	for _, e := range c.Elements { // the tool's own configuration is over that of runtimes
		config, _ := e.Doc.Metadata["config"].(map[string]any)
		id, _ := config["server"].(string)
		if id == "" {
			continue
		}
		found, err := b.in(e.Space, id).Find(item.Tool, id)
		if err != nil {
			return fmt.Errorf("%s names the MCP server %s: %w", e.ID, item.Shown(id), err)
		}
		server, err := b.element(gate, found, "")
		if err != nil {
			return fmt.Errorf("%s names the MCP server %s: %w", e.ID, id, err)
		}
		if server.Doc.ToolType != TypeServer {
			return tool.Faultf(tool.CodeInvalidItem, "%s names %s as its server, which is no mcp_server item (tool_type)", e.ID, id).With("path", found.Path)
		}
		c.Server = &server
		if w := server.Verified.Warning; w != "" {
			c.Warnings = append(c.Warnings, w)
		}
		return nil
	}
	return nil
}
