package action

import (
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Values of ExecuteRequest.Thread.
const (
	ThreadInline = "inline"
	ThreadFork   = "fork"
)

// IncludeThreads is the value of include that adds the records of threads.
const IncludeThreads = "threads"

// ExecuteRequest is the input of rye_execute.
type ExecuteRequest struct {
	ItemType       string        `json:"item_type,omitempty" enum:"directive,tool,knowledge" jsonschema:"left out, the id is looked up as directive, tool, knowledge"`
	ItemID         string        `json:"item_id,omitempty" alias:"id,item,directive_id,tool_id,directive:item_type,tool:item_type,knowledge:item_type" jsonschema:"id of the item, for example rye/file-system/read"`
	ProjectPath    string        `json:"project_path,omitempty" jsonschema:"absolute path; left out, the project of the server"`
	Parameters     tool.Object   `json:"parameters,omitempty" alias:"inputs,input,params,arguments,args" jsonschema:"inputs of the directive or parameters of the tool; undeclared ones are refused"`
	DryRun         bool          `json:"dry_run,omitempty" jsonschema:"check everything, say what would happen, and do nothing"`
	Trace          bool          `json:"trace,omitempty" jsonschema:"of a tool: tell what ran it"`
	Thread         string        `json:"thread,omitempty" enum:"inline,fork" jsonschema:"inline: a directive's text comes back for you to carry out yourself, a tool runs and its result comes back; fork: a directive runs in a thread of its own. Left out: inline, except that a directive is forked when you are in a thread yourself or give async, model, limit_overrides, wait_seconds or request_key"`
	Async          bool          `json:"async,omitempty" jsonschema:"do not wait: answer with a thread id at once; for forked directives and for tools"`
	Model          string        `json:"model,omitempty" jsonschema:"model or tier for a forked directive, instead of its own choice"`
	LimitOverrides item.LimitSet `json:"limit_overrides,omitempty" alias:"limits" jsonschema:"limits for a forked directive: turns, tokens, spend (US dollars), duration_seconds, spawns, depth"`
	WaitSeconds    *float64      `json:"wait_seconds,omitempty" alias:"timeout" minimum:"0" jsonschema:"longest wait for a forked directive; after it the thread goes on"`
	ResumeThreadID thread.ID     `json:"resume_thread_id,omitempty" jsonschema:"instead of item_id: a thread that has ended, to resume with parameters.message, as resume_thread does"`
	RequestKey     string        `json:"request_key,omitempty" jsonschema:"a key of your own: a repeated call with it returns the thread of the first"`
}

// FetchRequest is the input of rye_fetch: by id, or by query.
type FetchRequest struct {
	ItemType    string `json:"item_type,omitempty" enum:"directive,tool,knowledge" jsonschema:"left out, the id is looked up as directive, tool, knowledge"`
	ItemID      string `json:"item_id,omitempty" alias:"id,item,directive_id,tool_id,directive:item_type,tool:item_type,knowledge:item_type" jsonschema:"id of the item to read; give this or query"`
	Query       string `json:"query,omitempty" alias:"text" jsonschema:"search, as rye_search"`
	Scope       string `json:"scope,omitempty" jsonschema:"of the query"`
	Limit       int    `json:"limit,omitempty" minimum:"1" maximum:"100" default:"20" jsonschema:"most results of a query"`
	Offset      int    `json:"offset,omitempty" minimum:"0" jsonschema:"next_offset of the answer before"`
	Source      string `json:"source,omitempty" enum:"project,user,system" jsonschema:"of this space, not the first that has the id"`
	Destination string `json:"destination,omitempty" enum:"project,user" jsonschema:"copy it there, under the same id"`
	Overwrite   bool   `json:"overwrite,omitempty" jsonschema:"replace what stands there; it is kept"`
	MaxBytes    int    `json:"max_bytes,omitempty" minimum:"500" maximum:"1000000" jsonschema:"most bytes of content in one answer"`
	ProjectPath string `json:"project_path,omitempty" jsonschema:"absolute path; left out, the project of the server"`
}

// SearchRequest is the input of rye_search.
type SearchRequest struct {
	Query       string      `json:"query,omitempty" alias:"text,q" jsonschema:"a b (both), a OR b, NOT a, (a OR b) c, \"a phrase\", begin*; * lists all"`
	Scope       string      `json:"scope,omitempty" jsonschema:"directive, tool, knowledge, or tool.rye.core.*"`
	Source      string      `json:"source,omitempty" alias:"space" enum:"project,user,system,all" jsonschema:"of this space only"`
	Fields      []string    `json:"fields,omitempty" jsonschema:"look only in title, name, description, category, body; title:words: for these there"`
	Filters     tool.Object `json:"filters,omitempty" jsonschema:"metadata to have: {category: x, tags: [a, b], version: \u003e=1.2, author: !x, date_from: 2026-01-31}"`
	Fuzzy       int         `json:"fuzzy,omitempty" maximum:"3" jsonschema:"letters that may be wrong in a word"`
	Proximity   int         `json:"proximity,omitempty" maximum:"1000" jsonschema:"words at most between those that must all occur"`
	SortBy      search.Sort `json:"sort_by,omitempty" enum:"score,date,name" jsonschema:"date: newest first"`
	Limit       int         `json:"limit,omitempty" minimum:"1" maximum:"100" default:"20" jsonschema:"most results"`
	Offset      int         `json:"offset,omitempty" minimum:"0" jsonschema:"next_offset of the answer before"`
	Include     string      `json:"include,omitempty" enum:"threads" jsonschema:"threads: transcripts too"`
	ProjectPath string      `json:"project_path,omitempty" jsonschema:"absolute path; left out, the project of the server"`
	// action is the call that searches: fetch, or search where it is empty.
	action string
}

// SignRequest is the input of rye_sign.
type SignRequest struct {
	ItemType    string `json:"item_type,omitempty" enum:"directive,tool,knowledge" jsonschema:"left out, every kind"`
	ItemID      string `json:"item_id" alias:"id,item,directive_id,tool_id,directive:item_type,tool:item_type,knowledge:item_type" jsonschema:"id of the item, or a pattern: * matches within one folder, ** across folders; or the path of an item's file or of a settings file, absolute or beginning with ./"`
	Source      string `json:"source,omitempty" enum:"project,user" jsonschema:"of this space only"`
	ProjectPath string `json:"project_path,omitempty" jsonschema:"absolute path; left out, the project of the server"`
}
