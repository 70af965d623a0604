// Package mcp has the tools that bring in other MCP servers: discover writes items for
// the tools of a server, connect shows what it offers. The text of a server about its tools
// goes into those items as its words, bounded, on one line, and is never signed here:
// a signature is a person's, or of a caller that may sign.
package mcp
