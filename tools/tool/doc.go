// Package tool defines what a tool is: a definition that a model can read, and
// a call that takes and gives JSON. Built-in tools are made with [New] from a
// Go function, so that schema and decoding come from the same types.
//
// # Errors that leave the program
//
// Inside, errors are sentinels and typed errors. Three forms leave it:
//
//	Fault           says     what was wrong with a call, what is valid, what to call next
//	                reaches  a model, as a result with isError; a person, as Error: and Try:
//	                made by  the code that refuses; [AsFault] and action.Fault for all other errors
//	                code     [Code]
//	thread.Problem  says     why a thread did not complete, and what it was doing
//	                reaches  its row, thread.json, transcript, every answer about the thread
//	                made by  the loop (decide), recovery, control for a start that failed
//	                code     that of a fault, turns_exceeded and other limits, provider_…,
//	                         context_full, output_limit, model_refused, process_died, store_away, transcript_lost
//	JSON-RPC error  says     what was wrong with a message
//	                reaches  the client, whose model need not see it
//	                made by  mcp/server (rpcError)
//	                code     -32700 to -32600 of JSON-RPC, -32000 busy
//
// A tool that ran and failed is a Fault with [CodeToolFailed]; a model may act on
// it. A failure of rye-mcp itself is one with [CodeInternal].
package tool
