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
	ItemType       string        `json:"item_type,omitempty" alias:"type" enum:"directive,tool,knowledge"`
	ItemID         string        `json:"item_id,omitempty" alias:"id,item,directive_id,tool_id,directive:item_type,tool:item_type,knowledge:item_type" jsonschema:"such as rye/file-system/read"`
	ProjectPath    string        `json:"project_path,omitempty"`
	Parameters     tool.Object   `json:"parameters,omitempty" alias:"inputs,input,params,arguments,args" jsonschema:"the item's declared inputs"`
	DryRun         bool          `json:"dry_run,omitempty" jsonschema:"plan and worst-case cost only"`
	Trace          bool          `json:"trace,omitempty" jsonschema:"of a tool: what ran it"`
	Thread         string        `json:"thread,omitempty" enum:"inline,fork" jsonschema:"default inline; fork with async, model, limits, wait_seconds or request_key"`
	Async          bool          `json:"async,omitempty" alias:"background,run_in_background" jsonschema:"do not wait"`
	Model          string        `json:"model,omitempty" jsonschema:"or tier, of the thread"`
	Limits         item.LimitSet `json:"limits,omitempty" alias:"limit_overrides" jsonschema:"lower ones: turns, tokens, spend (US dollars), duration_seconds, spawns, depth"`
	WaitSeconds    *float64      `json:"wait_seconds,omitempty" alias:"timeout" minimum:"0"`
	Workspace      string        `json:"workspace,omitempty" alias:"isolation" enum:"worktree"`
	ResumeThreadID thread.ID     `json:"resume_thread_id,omitempty" jsonschema:"thread to resume with parameters.message"`
	RequestKey     string        `json:"request_key,omitempty" jsonschema:"the same call again returns that thread"`
}

// FetchRequest is the input of rye_fetch: by id, or by query.
type FetchRequest struct {
	ItemType    string `json:"item_type,omitempty" alias:"type" enum:"directive,tool,knowledge"`
	ItemID      string `json:"item_id,omitempty" alias:"id,item,directive_id,tool_id,directive:item_type,tool:item_type,knowledge:item_type"`
	Query       string `json:"query,omitempty" alias:"text" jsonschema:"search, as rye_search"`
	Scope       string `json:"scope,omitempty"`
	Limit       int    `json:"limit,omitempty" minimum:"1" maximum:"100" default:"20"`
	Offset      int    `json:"offset,omitempty" minimum:"0"`
	Source      string `json:"source,omitempty" alias:"space" enum:"project,user,system"`
	Destination string `json:"destination,omitempty" enum:"project,user"`
	Overwrite   bool   `json:"overwrite,omitempty" jsonschema:"what is replaced is kept"`
	MaxBytes    int    `json:"max_bytes,omitempty" minimum:"500" maximum:"1000000"`
	ProjectPath string `json:"project_path,omitempty"`
}

// SearchRequest is the input of rye_search.
type SearchRequest struct {
	Query       string      `json:"query,omitempty" alias:"text,q" jsonschema:"a b (both), a OR b, NOT a, (a OR b) c, \"a phrase\", begin*; * lists all"`
	Scope       string      `json:"scope,omitempty" alias:"item_type,type" jsonschema:"directive, tool, knowledge or tool.rye.core.*"`
	Source      string      `json:"source,omitempty" alias:"space" enum:"project,user,system,all"`
	Fields      []string    `json:"fields,omitempty" jsonschema:"title, name, description, category, body; or title:words"`
	Filters     tool.Object `json:"filters,omitempty" jsonschema:"{tags: [a], version: 1.2, author: !x, date_from: 2026-01-31}"`
	Fuzzy       int         `json:"fuzzy,omitempty" maximum:"3" jsonschema:"wrong letters a word"`
	Proximity   int         `json:"proximity,omitempty" maximum:"1000" jsonschema:"most words between"`
	SortBy      search.Sort `json:"sort_by,omitempty" enum:"score,date,name"`
	Limit       int         `json:"limit,omitempty" minimum:"1" maximum:"100" default:"20"`
	Offset      int         `json:"offset,omitempty" minimum:"0"`
	Include     string      `json:"include,omitempty" enum:"threads" jsonschema:"transcripts too"`
	ProjectPath string      `json:"project_path,omitempty"`
	// action is the call that searches: fetch, or search where it is empty.
	action string
	room   int // for the hits; 0: what the caller has
}

// SignRequest is the input of rye_sign.
type SignRequest struct {
	ItemType    string `json:"item_type,omitempty" alias:"type" enum:"directive,tool,knowledge"`
	ItemID      string `json:"item_id" alias:"id,item,directive_id,tool_id,directive:item_type,tool:item_type,knowledge:item_type,path,pattern" jsonschema:"an id, a pattern (review/*, **) or a path (absolute, ./)"`
	Source      string `json:"source,omitempty" alias:"space" enum:"project,user"`
	ProjectPath string `json:"project_path,omitempty"`
	// Acknowledge are tiers of risk that a person accepts for items of other programs.
	Acknowledge []string `json:"-"`
}
