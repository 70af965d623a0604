// Package action is the four primary actions: execute, fetch, search and sign.
// MCP clients and threads go through the same code; what differs between them
// stands in [Caller]. Starting, watching and stopping threads belongs to the
// orchestrator and is reached through [Threads].
package action
