// Package mcpclient uses the tools of other MCP servers.
//
// [Connections] keeps a connection to each server that was asked something, over
// standard input and output or Streamable HTTP, until it is closed: a thread's
// process has one for its life. All that a server says is bounded and foreign: names
// and texts of it are data, its requests to the client (sampling, elicitation,
// roots) are refused.
package mcpclient
