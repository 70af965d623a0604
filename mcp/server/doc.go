// Package server is the MCP boundary: the SDK server, the transports, typed
// tools, progress, and the one mapping of errors to results.
//
//	stdio, /message ──────┐
//	POST /mcp ──guard─────┴─> conn ──one goroutine a request──> MCPServer.HandleMessage ──> Tool.Handle
//	                                                       (methods of Handle come before it)
//	stream or body <──outbox── answers, progress, notifications and our own requests, in the order they were queued
//
// A server is made with [New], gets its tools with [Add], and serves one client
// a call of [Server.ServeStdio], or many with [Server.ServeHTTPOn]. mcp-go does
// the protocol: revisions 2024-11-05 to 2025-11-25 through the initialize
// handshake, and 2026-07-28 for every request that declares it. Its transports
// are not used: they let progress arrive after the answer or not at all, answer
// cancelled requests, let one client cancel another's, and let web pages in.
//
// A conn is one client: on stdio, behind a stream at /sse, in a session of /mcp,
// or, in a revision without sessions, of one request. Messages about a request
// go to its outbox, which is the client's only one or, for a POST to /mcp, one
// of its own that ends with the answer. Batches, which revision 2025-03-26 alone
// has, are served as messages one after the other and answered message by message.
//
// A handler asks the person with [Elicit]: by a request to the client that goes
// the way of the call's other messages, or, in revision 2026-07-28, by a result
// that has the client make the call again with the answer.
//
// Prompts, resources and completion are [Prompts] and [Resources] that the server is
// handed with [Server.OfferPrompts] and [Server.OfferResources]. Their offer
// depends on the project of the call, which lists of mcp-go cannot, so that their
// methods are answered by what [Handle] adds, in front of mcp-go. A client is told
// what changes by one notification for each thing that has changed, however often,
// until it reads: while its session lasts, or, in revision 2026-07-28, on the stream
// that it listens to.
//
// An answer has the room that its call gives it, and says how to read what it had
// no room for: from where that lies, or from the server, which keeps it.
//
// A refusal or a failure of a tool is a result with isError that a model can
// read and act on. JSON-RPC errors say what is wrong with a message.
package server
