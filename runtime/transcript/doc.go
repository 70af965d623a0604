// Package transcript is the record of a thread: transcript.jsonl, one JSON
// object a line, only ever appended to by the one process that holds the
// thread's life lock, and read by any other at any time.
//
//	{"timestamp":"2026-03-01T09:30:00.250Z","thread_id":"…","seq":7,"event_type":"cognition_out","payload":{…}}
//
// A line counts from the moment its newline is written. A crash can
// leave a torn line behind the last newline: readers report it, and the next
// writer cuts it off. The order of events is that of seq; timestamps are those of the wall
// clock and go back when it is set back. The payload of every event type is a struct in payload.go.
//
// # Checkpoints
//
// A checkpoint line holds the SHA-256 of all bytes before it, signed when the
// user has a key. The hash is kept open between lines, so that a checkpoint
// costs the same at any length. Each hash covers the checkpoints before it,
// which makes them a chain: [Verify] names the first turn that does not hold.
//
// # Chains
//
// A thread that continues another begins with thread_continued and the messages
// that it was given, see [Writer.Seed]. One that hands over ends with
// thread_handoff; that one was resumed comes behind its end, see [Writer.Add].
//
// # Messages
//
// Streamed text is on record twice, piece by piece as token_delta for those who
// watch, and whole in cognition_out, from which [Messages] rebuilds the
// conversation. A long result of the thread that is its last answer does not stand a
// third time in the event of its end, which names the answer: see [LastOutcome].
package transcript
