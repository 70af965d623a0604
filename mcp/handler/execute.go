package handler

import (
	"bytes"
	"context"
	_ "embed" // execute.md
	"encoding/json"
	"strings"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

//go:embed execute.md
var executeText string

// executeOutput documents what a result can have; which members are there
// depends on the kind of item and on thread, async and dry_run. It is sent as
// the action returned it: an [action.InlineDirective], [action.ToolResult],
// [action.KnowledgeResult] or [action.DryRun], a [view.Started] or
// [plan.Preview], or the result of the operation that
// rye/agent/threads/orchestrator was asked for. The content of Chain has members
// of its own in a tool's result and in that of get_chain.
type executeOutput struct {
	Success bool `json:"success" jsonschema:"of a thread: it has not failed and was not cancelled"`
	// A forked directive, or a tool in the background.
	ThreadID         thread.ID       `json:"thread_id,omitempty" jsonschema:"the thread that was started"`
	ResolvedThreadID thread.ID       `json:"resolved_thread_id,omitempty" jsonschema:"the thread that continues it; status, result and cost are its"`
	Directive        string          `json:"directive,omitempty" jsonschema:"what the thread runs"`
	Status           thread.State    `json:"status,omitempty" jsonschema:"state of the thread: created or running while it works; completed, error, cancelled or continued afterwards"`
	Result           string          `json:"result,omitempty" jsonschema:"final text of the thread"`
	Outputs          map[string]any  `json:"outputs,omitempty" jsonschema:"the directive's declared outputs"`
	Code             string          `json:"code,omitempty" jsonschema:"stable code of a failure"`
	Error            string          `json:"error,omitempty" jsonschema:"why the thread did not complete, or what was wrong with the call"`
	Problem          *thread.Problem `json:"problem,omitempty" jsonschema:"why the thread did not complete, with code and circumstances"`
	Cost             *thread.Cost    `json:"cost,omitempty" jsonschema:"used by the thread so far"`
	ChainCost        *thread.Cost    `json:"chain_cost,omitempty" jsonschema:"own cost of all threads of the chain, where there are several"`
	TreeSpend        *thread.Micros  `json:"tree_spend,omitempty" jsonschema:"US dollars, with everything below it, where that has spent some"`
	Warnings         []string        `json:"warnings,omitempty"`
	Changes          *thread.Changes `json:"changes,omitempty" jsonschema:"in the workspace of the thread"`
	Retry            *thread.Retry   `json:"retry,omitempty" jsonschema:"it has failed and is tried again: not over"`
	NotRetried       string          `json:"not_retried,omitempty" jsonschema:"why it was not tried again"`
	PID              int             `json:"pid,omitempty" jsonschema:"process id of the thread while it works"`
	Existing         bool            `json:"existing,omitempty" jsonschema:"request_key named this thread already"`
	Queued           any             `json:"queued,omitempty" jsonschema:"the thread is queued until fewer threads run; of thread_health, how many do"`
	Waiting          []view.Waiting  `json:"waiting,omitempty" jsonschema:"questions, here and below, that want an answer"`
	Next             string          `json:"next,omitempty" jsonschema:"what to call next"`
	// An item carried out at once.
	Type           string           `json:"type,omitempty" jsonschema:"kind of the item"`
	ItemID         string           `json:"item_id,omitempty"`
	Space          string           `json:"space,omitempty" jsonschema:"project, user or system"`
	YourDirections string           `json:"your_directions,omitempty" jsonschema:"what to do with body"`
	Body           string           `json:"body,omitempty" jsonschema:"text of an inline directive, its inputs filled in"`
	Instructions   string           `json:"instructions,omitempty" jsonschema:"what to do with the content of knowledge"`
	Data           any              `json:"data,omitempty" jsonschema:"of a tool, or of knowledge"`
	Chain          []map[string]any `json:"chain,omitempty" jsonschema:"from the tool to what ran it; of get_chain, the threads"`
	Trace          []map[string]any `json:"trace,omitempty"`
	DurationMS     int64            `json:"duration_ms,omitempty" jsonschema:"milliseconds it ran"`
	// A dry run.
	Plan map[string]any `json:"plan,omitempty" jsonschema:"what would be done; of a fork: file, inputs, model, limits, capabilities, worst_case_cost"`

	sent any
}

// MarshalJSON writes the result as it came.
func (o executeOutput) MarshalJSON() ([]byte, error) { return asItIs(o.sent) }

// WholeOf tells where long texts of the result lie.
func (o executeOutput) WholeOf(place []string) (tool.Whole, bool) { return tool.WholeOf(o.sent, place) }

// Tells is what the result tells of threads.
func (o executeOutput) Tells() []view.Told { return view.ToldBy(o.sent) }

// Failed reports whether the thread has ended without success.
func (o executeOutput) Failed() bool { return tool.Failed(o.sent) }

// Attachments are those of the tool that was run.
func (o executeOutput) Attachments() []tool.Attachment { return tool.AttachmentsOf(o.sent) }

// asItIs is JSON without the escapes for HTML, which make code three times as
// long for a model.
func asItIs(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// operationsText is said where operations have no tools of their own.
const operationsText = "\nOperations such as wait_threads: item_id rye/agent/threads/orchestrator, " +
	`parameters {operation: "wait_threads", thread_ids: [...]}.`

func addExecute(s *server.Server, projects Projects, operations *operation.Table, listed bool) {
	text := strings.TrimSpace(executeText)
	if !listed {
		text += operationsText
	}
	addAnywhere(s, projects, texts{"rye_execute", text, []string{"resume_thread_id", "trace"}}, server.Annotations{
		Title: "Run a directive, tool or knowledge item", Destructive: true, OpenWorld: true,
	}, func(ctx context.Context, call server.Call, in action.ExecuteRequest) (executeOutput, error) {
		p, err := openFor(ctx, projects, call, threadsOf(operations, in))
		if err != nil {
			return executeOutput{}, err
		}
		by := caller(p, call)
		by.Detached = server.TakesTasks(ctx)
		result, err := p.Actions.Execute(ctx, by, in)
		if id, forked := isFork(result); err == nil && forked && by.Detached {
			err = answerWithTask(ctx, p, call, id)
		}
		return executeOutput{sent: result}, err
	})
}

// threadsOf are the threads that a call of rye_execute is about: those of an operation, or the
// one that is resumed. The call itself says what is wrong with the parameters of an operation.
func threadsOf(operations *operation.Table, in action.ExecuteRequest) []thread.ID {
	if in.ResumeThreadID != "" {
		return []thread.ID{in.ResumeThreadID}
	}
	if in.ItemID != action.OrchestratorID {
		return nil
	}
	name, params, err := in.Operation()
	if err != nil {
		return nil
	}
	meant, err := operations.Decode(name, params.Raw())
	if err != nil {
		return nil
	}
	return meant.Threads
}
