package control

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// WaitInput is the input of wait_threads.
type WaitInput struct {
	ThreadIDs []thread.ID `json:"thread_ids" alias:"thread_id,ids,id,threads" jsonschema:"threads to wait for"`
	Mode      string      `json:"mode,omitempty" enum:"all,any" default:"all" jsonschema:"all: until every one has ended; any: until one has"`
	Timeout   *float64    `json:"timeout,omitempty" alias:"wait_seconds" minimum:"0" jsonschema:"longest wait in seconds; 0 looks once. Threads that still work then are named in pending"`
}

// ThreadInput names one thread.
type ThreadInput struct {
	ThreadID thread.ID `json:"thread_id" alias:"id,thread" jsonschema:"id that rye_execute returned"`
}

// ListActiveInput is the input of list_active.
type ListActiveInput struct {
	ParentID thread.ID `json:"parent_id,omitempty" alias:"parent,parent_thread_id" jsonschema:"only children of this thread"`
	Limit    int       `json:"limit,omitempty" minimum:"1" maximum:"100" default:"50" jsonschema:"threads a page"`
	Cursor   string    `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

// ListInput is the input of list_threads.
type ListInput struct {
	Status    []thread.State `json:"status,omitempty" alias:"state,states" jsonschema:"only these: created, running, completed, error, cancelled, continued"`
	Directive string         `json:"directive,omitempty" alias:"directive_id,item_id" jsonschema:"only threads of this directive"`
	ParentID  thread.ID      `json:"parent_id,omitempty" alias:"parent,parent_thread_id" jsonschema:"only children of this thread"`
	Text      string         `json:"text,omitempty" alias:"query" jsonschema:"only threads whose id, name or directive contains this"`
	Limit     int            `json:"limit,omitempty" minimum:"1" maximum:"100" default:"50" jsonschema:"threads a page"`
	Cursor    string         `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

// AggregateInput is the input of aggregate_results.
type AggregateInput struct {
	ThreadIDs []thread.ID `json:"thread_ids" alias:"thread_id,ids,id,threads" jsonschema:"threads whose results are wanted"`
}

// TranscriptInput is the input of read_transcript.
type TranscriptInput struct {
	ThreadID thread.ID `json:"thread_id" alias:"id,thread" jsonschema:"id that rye_execute returned"`
	Part     string    `json:"part,omitempty" enum:"transcript,result,outputs" default:"transcript" jsonschema:"result and outputs read all of what the thread returned"`
	Format   string    `json:"format,omitempty" enum:"text,jsonl" default:"text" jsonschema:"jsonl: the events as stored"`
	Tail     int       `json:"tail,omitempty" minimum:"0" maximum:"1000" jsonschema:"only the last so many events"`
	Cursor   string    `json:"cursor,omitempty" jsonschema:"next_cursor of the call before: reads on from there"`
	MaxBytes int       `json:"max_bytes,omitempty" minimum:"500" maximum:"1000000" default:"10000" jsonschema:"most bytes of content"`
}
