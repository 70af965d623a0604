// Package server is the MCP boundary: the SDK server, the stdio transport,
// typed tools, progress, and the one mapping of errors to results.
//
//	in ──lineReader──> conn ──one goroutine a request──> MCPServer.HandleMessage ──> Tool.Handle
//	out <──outbox────── answers, progress, notifications and our own requests, in the order they were queued
//
// A server is made with [New], gets its tools with [Add], and serves one client
// a call of [Server.ServeStdio]. mcp-go does the protocol: revisions 2024-11-05
// to 2025-11-25 through the initialize handshake, and 2026-07-28 for every
// request that declares it. Its own stdio loop is not used: it serves tools
// with five workers, lets progress arrive after the answer, and answers
// cancelled requests.
//
// What a tool refuses or fails at is a result with isError that a model can
// read and act on. JSON-RPC errors are left for what is wrong with a message.
package server
