package chain

import (
	"context"
)

// Primitive runs plans. It is safe for concurrent use. Mistakes of the caller, and
// a tool that ran and failed, come back as a *tool.Fault; the result marshals to
// JSON. One that keeps processes or connections is an io.Closer, and is closed with
// the thread, or with the server outside threads.
type Primitive interface {
	// Check reads the configuration of a chain before any call. Notes say what of it
	// nobody reads; the error is a *tool.Fault about what no call could use.
	Check(c *Chain) (notes []string, err error)
	Run(ctx context.Context, p *Plan) (any, error)
}

// The ids of the primitives. Each is an item of the system space with the
// tool_type "primitive"; an item of another space is never one.
const (
	Subprocess = "rye/core/primitives/subprocess"
	HTTPClient = "rye/core/primitives/http_client"
	MCP        = "rye/core/primitives/mcp"
	Builtin    = "rye/core/primitives/builtin"
)

// Types of tools that mean something to a chain.
const (
	TypePrimitive = "primitive"
	TypeRuntime   = "runtime"
	TypeServer    = "mcp_server" // no tool, but where tools of the MCP primitive are
	TypeLibrary   = "library"    // what tools import
)

// Primitives lists their ids.
func Primitives() []string { return []string{Subprocess, HTTPClient, MCP, Builtin} }

// olderIDs are executor ids that existing items have, with what they mean now.
var olderIDs = map[string]string{
	"rye/core/builtin":                          Builtin,
	"rye/core/primitives/execute":               Subprocess,
	"rye/core/primitives/mcp_client":            MCP,
	"rye/core/runtimes/python_script_runtime":   "rye/core/runtimes/python/script",
	"rye/core/runtimes/python_function_runtime": "rye/core/runtimes/python/function",
	"rye/core/runtimes/python_runtime":          "rye/core/runtimes/python/script",
	"rye/core/runtimes/node_runtime":            "rye/core/runtimes/node/node",
	"rye/core/runtimes/bash_runtime":            "rye/core/runtimes/bash/bash",
	"rye/core/runtimes/mcp_http_runtime":        "rye/core/runtimes/mcp/http",
	"rye/core/runtimes/mcp_stdio_runtime":       "rye/core/runtimes/mcp/stdio",
	"rye/core/runtimes/http_runtime":            "rye/core/runtimes/http/http",
}

// Meant is the id that an executor id means: existing items have older ones.
func Meant(executor string) string {
	if now, older := olderIDs[executor]; older {
		return now
	}
	return executor
}

// fullIDs are what an id may mean that no item has: existing items leave the beginning
// out, as in python_runtime and subprocess.
func fullIDs(executor string) []string {
	var ids []string
	for _, folder := range []string{"rye/core/primitives/", "rye/core/runtimes/", "rye/core/"} {
		ids = append(ids, Meant(folder+executor))
	}
	return ids
}
