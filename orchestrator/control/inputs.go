package control

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// TranscriptInput is the input of read_transcript.
type TranscriptInput struct {
	ThreadID thread.ID `json:"thread_id" alias:"id,thread" jsonschema:"id that rye_execute returned"`
	Part     string    `json:"part,omitempty" enum:"transcript,result,outputs" default:"transcript" jsonschema:"result and outputs read all of what the thread returned"`
	Format   string    `json:"format,omitempty" enum:"text,jsonl" default:"text" jsonschema:"jsonl: the events as stored"`
	Tail     int       `json:"tail,omitempty" minimum:"0" maximum:"1000" jsonschema:"only the last so many events"`
	Cursor   string    `json:"cursor,omitempty" jsonschema:"next_cursor of the call before: reads on from there"`
	MaxBytes int       `json:"max_bytes,omitempty" minimum:"500" maximum:"1000000" default:"10000" jsonschema:"most bytes of content"`
}
