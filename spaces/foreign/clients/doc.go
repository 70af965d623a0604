// Package clients knows the programs that MCP servers are installed in: where each keeps
// its configuration, in which form, and what of its environment a server gets. It edits
// the bytes of such a configuration in place, so that comments, order, indentation, line
// ends and whatever it does not know stay as they are. It reads and writes no file.
package clients
