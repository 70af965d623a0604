// Package resource shows the threads and items of a project as resources of MCP: by
// URI, without a call of a tool, for what people attach to a conversation and for
// clients that follow a thread.
//
//	rye://threads                          how the threads stand
//	rye://threads/{+id}/transcript|result|cost|chain
//	rye://items/{type}/{+id}
//
// A URI is read by [Parse] and by nothing else. The content comes from the rooms that
// tools ask: view for threads, the primary action fetch for items, with what that
// refuses and leaves out. Changes of threads are told by orchestrator/changes, those of
// items by the watch of the project's spaces.
package resource
