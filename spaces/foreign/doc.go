// Package foreign reads what other programs know: the MCP servers that editors and
// agents are configured with. It reads bytes and writes nothing; values that may be
// secrets leave it as references to variables.
package foreign
