package transcript

import (
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// ThreadStarted is the payload of thread_started.
type ThreadStarted struct {
	Directive    string        `json:"directive"`
	Model        string        `json:"model"` // "provider/model"
	ParentID     thread.ID     `json:"parent_id,omitempty"`
	Limits       thread.Limits `json:"limits"`
	Capabilities []string      `json:"capabilities"`
	Warnings     []string      `json:"warnings,omitempty"` // what the start had to say
	// When the thread was put into the queue, and when it was given a slot, as its row says.
	QueuedAt   time.Time `json:"queued_at,omitzero"`
	AdmittedAt time.Time `json:"admitted_at,omitzero"`
}

// ThreadContinued is the payload of thread_continued, the first event of a
// thread that goes on with the conversation of another. The messages it was given
// follow as cognition_in, in their order and with their roles.
type ThreadContinued struct {
	PreviousThreadID thread.ID  `json:"previous_thread_id"`
	Via              thread.Via `json:"via"`
	Messages         int        `json:"messages"` // that follow and were not said in this thread
	// Counted is what was counted of them; nil: nothing, or they are not all that was said.
	Counted *Count `json:"counted,omitempty"`
}

// Count is what a provider has counted of the beginning of a conversation.
type Count struct {
	Tokens   int64  `json:"tokens"`   // with the system prompt and the tools of that call
	Messages int    `json:"messages"` // that are in it, from the first on
	Model    string `json:"model"`    // whose tokens they are, "provider/model"
}

// ThreadResumed is the payload of thread_resumed, in the thread that was
// resumed, behind its end.
type ThreadResumed struct {
	NewThreadID        thread.ID `json:"new_thread_id"`
	Directive          string    `json:"directive"`
	MessagePreview     string    `json:"message_preview"` // the beginning of what the person said
	ReconstructedTurns int       `json:"reconstructed_turns"`
}

// Resumed is the event that a thread was resumed, for [Writer.Add].
func Resumed(successor thread.ID, directive, message string, turns int) Addition {
	return Addition{Type: thread.EventThreadResumed, Payload: ThreadResumed{
		NewThreadID: successor, Directive: directive, MessagePreview: preview(message), ReconstructedTurns: turns,
	}}
}

// ThreadHandoff is the payload of thread_handoff, which ends a thread that has
// handed over. It is [Ended] with what the outcome says of the handoff.
type ThreadHandoff struct {
	thread.Handoff
	Ended
}

// Ended is the payload of thread_completed, thread_error and thread_cancelled.
type Ended struct {
	Outcome thread.Outcome `json:"outcome"`
	Cost    thread.Cost    `json:"cost"`
	// ResultOf are the numbers of the answers whose text the result is, where it is
	// long: Outcome.Result is empty then. See [LastOutcome].
	ResultOf []int64 `json:"result_of,omitempty"`
}

// payload is what the terminal event of type t says.
func (e Ended) payload(t thread.EventType) any {
	if t == thread.EventThreadHandoff {
		return ThreadHandoff{Handoff: *e.Outcome.Handoff, Ended: e}
	}
	return e
}

// ToolsOffered is the payload of tools_offered: the functions that the model is given,
// as each request has them.
type ToolsOffered struct {
	Tools []llm.Tool `json:"tools"`
}

// SystemPrompt is the payload of system_prompt.
type SystemPrompt struct {
	Text string `json:"text"`
}

// ContextInjected is the payload of context_injected: an item that became part
// of the first message.
type ContextInjected struct {
	ItemID    string `json:"item_id"`
	Position  string `json:"position"`            // system, before or after
	Directive string `json:"directive,omitempty"` // id of the one that asks for it
	HookID    string `json:"hook_id,omitempty"`   // of the hook that gives it
	Hash      string `json:"hash,omitempty"`      // SHA-256 of the item's file, hex; not of what a hook gives
	Bytes     int    `json:"bytes"`               // of its text in the message
	// Text is what stands in the message where no item has it: what a command or a
	// tool gave, or what another thread has left. Of is the command, or the path of a file that was read.
	Text string `json:"text,omitempty"`
	Of   string `json:"of,omitempty"`
}

// CognitionIn is the payload of cognition_in: a message given to the model,
// other than one of tool results.
type CognitionIn struct {
	Role   llm.Role `json:"role"`
	Blocks Blocks   `json:"blocks"`
}

// Message is the payload of message: what the thread was told while it worked. Its blocks
// are a message of the user to the model.
type Message struct {
	MessageID string             `json:"message_id,omitempty"` // in the thread's queue; empty for an event, which stands in none
	Kind      thread.MessageKind `json:"kind"`
	From      thread.Sender      `json:"from"`
	PostedAt  string             `json:"posted_at,omitempty"` // RFC 3339
	Ended     thread.ID          `json:"ended,omitempty"`     // the thread that an event tells the end of
	Blocks    Blocks             `json:"blocks"`
}

// CognitionOut is the payload of cognition_out: a whole answer of the model.
type CognitionOut struct {
	Turn       int            `json:"turn"` // from 1
	Model      string         `json:"model,omitempty"`
	Blocks     Blocks         `json:"blocks"`
	StopReason llm.StopReason `json:"stop_reason"`
	StopWord   string         `json:"stop_word,omitempty"` // the vendor's, where the reason says less
	Usage      llm.Usage      `json:"usage"`
	Spend      thread.Micros  `json:"spend"` // of this call
	Took
}

// Took is how long a call of the model took, in milliseconds. Events of older versions
// do not have it.
type Took struct {
	ModelMS int64 `json:"model_ms,omitempty"` // from its beginning to its end
	// FirstMS is from when the whole request had left to the first piece of the answer;
	// nil: there was none.
	FirstMS *int64 `json:"first_ms,omitempty"`
}

// CognitionRequest is the payload of cognition_request: a request that has left for
// the model, with what is needed to settle its cost should nobody hear of the end.
type CognitionRequest struct {
	Turn        int       `json:"turn"`
	Model       string    `json:"model"`        // "provider/model"
	InputTokens int64     `json:"input_tokens"` // the most it can be
	MaxTokens   int       `json:"max_tokens"`   // the output it was allowed
	Price       llm.Price `json:"price"`        // micro-dollars per million tokens
	// ContextWindow is that of the model, in tokens; 0: not known.
	ContextWindow int `json:"context_window,omitempty"`
	// Bytes is the size of the body, and SentMS how long it took to leave: to connect and
	// to send it, in milliseconds. Events of older versions have neither.
	Bytes  int64 `json:"bytes,omitempty"`
	SentMS int64 `json:"sent_ms,omitempty"`
	// Attempt is that of [ErrorClassified]; left out for the first.
	Attempt int `json:"attempt,omitempty"`
}

// TokenDelta is the payload of token_delta: text that arrived within one batch.
type TokenDelta struct {
	Turn  int           `json:"turn"`
	Type  llm.BlockType `json:"type,omitempty"`  // empty with Usage
	Text  string        `json:"text,omitempty"`  // the tool's name when Type is tool_use
	Bytes int           `json:"bytes,omitempty"` // of a call's arguments, which cognition_out has
	Usage *llm.Usage    `json:"usage,omitempty"` // what the provider had counted when the answer began
}

// CognitionReasoning is the payload of cognition_reasoning.
type CognitionReasoning struct {
	Turn int    `json:"turn"`
	Text string `json:"text"`
}

// ToolCallStart is the payload of tool_call_start.
type ToolCallStart struct {
	Turn   int    `json:"turn"`
	CallID string `json:"call_id"`
	Tool   string `json:"tool"`
	Input  Input  `json:"input,omitempty"`
}

// ToolCallResult is the payload of tool_call_result. Results are recorded as
// they come in; [Messages] puts them into the order of the calls.
type ToolCallResult struct {
	Turn       int    `json:"turn"`
	CallID     string `json:"call_id"`
	Tool       string `json:"tool"`
	Text       string `json:"text"` // what the model is given
	IsError    bool   `json:"is_error,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	// Spend is what tools have bought of the thread's money since the event before that
	// says so.
	Spend thread.Micros `json:"spend,omitempty"`
	// Images are what the model is given to look at, by reference.
	Images []llm.Image `json:"images,omitempty"`
	// Sum and SameAs are those of [llm.Content].
	Sum    string `json:"sum,omitempty"`
	SameAs string `json:"same_as,omitempty"`
	// Ended are threads that this one has started and whose end the result tells of.
	Ended []thread.ID `json:"ended,omitempty"`
}

// ErrorClassified is the payload of error_classified.
type ErrorClassified struct {
	Turn     int    `json:"turn,omitempty"`
	Attempt  int    `json:"attempt,omitempty"` // the call that failed, in a row of this model, from 1
	Model    string `json:"model,omitempty"`   // "provider/model"
	Category string `json:"category"`          // of the failure, for example rate_limited
	Pattern  string `json:"pattern,omitempty"` // id of the rule that decided it
	Status   int    `json:"status,omitempty"`  // of HTTP
	Type     string `json:"type,omitempty"`    // the vendor's, or ours of an answer that is a failure
	Code     string `json:"code,omitempty"`
	Message  string `json:"message"`
	// The price of the call, and its tokens of all kinds.
	Spend  thread.Micros `json:"spend,omitempty"`
	Tokens int64         `json:"tokens,omitempty"`
	Took
}

// Retry is the payload of retry.
type Retry struct {
	Turn    int    `json:"turn"`
	Attempt int    `json:"attempt"`         // the one that will be made, in a row of this model
	Model   string `json:"model,omitempty"` // that will be asked, "provider/model"
	DelayMS int64  `json:"delay_ms"`
	Reason  string `json:"reason"`
}

// LimitExceeded is the payload of limit_exceeded; the fields are those of
// [thread.LimitError].
type LimitExceeded struct {
	Code  string `json:"limit_code"`
	Value string `json:"current_value"`
	Max   string `json:"current_max"`
	// Chain says the same of the chain; nil: the thread began with limits of its own.
	Chain *thread.ChainUse `json:"chain,omitempty"`
}

// Reached is the event as an error.
func (p LimitExceeded) Reached() *thread.LimitError {
	return &thread.LimitError{Code: p.Code, Value: p.Value, Max: p.Max, Chain: p.Chain}
}

// QuestionAsked is the payload of question_asked.
type QuestionAsked struct {
	QuestionID string            `json:"question_id"`
	Kind       string            `json:"kind"`
	Code       string            `json:"code,omitempty"` // what it is about
	Text       string            `json:"text"`
	Options    []thread.Decision `json:"options"`
	Default    thread.Decision   `json:"default"`     // when nobody answers in time
	DeadlineAt string            `json:"deadline_at"` // RFC 3339
}

// QuestionAnswered is the payload of question_answered.
type QuestionAnswered struct {
	QuestionID string             `json:"question_id"`
	Decision   thread.Decision    `json:"decision"`
	Limits     map[string]float64 `json:"limits,omitempty"`  // new values that were given
	Summary    string             `json:"summary,omitempty"` // that was given for a handoff
	By         string             `json:"by"`
	WaitedMS   int64              `json:"waited_ms"`
}

// ChildStarted is the payload of child_thread_started.
type ChildStarted struct {
	ThreadID  thread.ID `json:"thread_id"`
	Directive string    `json:"directive"`
	CallID    string    `json:"call_id,omitempty"` // of the tool call that started it
	HookID    string    `json:"hook_id,omitempty"` // of the hook that started it
}

// HookFired is the payload of hook_fired, written when the hook is through.
type HookFired struct {
	HookID     string   `json:"hook_id"`
	Event      string   `json:"event"`
	Layer      int      `json:"layer"`
	Source     string   `json:"source"`           // file:line of the hook
	Result     string   `json:"result,omitempty"` // what its actions did
	Error      string   `json:"error,omitempty"`  // of the action that failed
	Warnings   []string `json:"warnings,omitempty"`
	DurationMS int64    `json:"duration_ms"`
	// Spend is that of [ToolCallResult].
	Spend thread.Micros `json:"spend,omitempty"`
}

// DirectiveReturn is the payload of directive_return: outputs that were
// accepted.
type DirectiveReturn struct {
	Outputs map[string]any `json:"outputs"`
}

// Checkpoint is the payload of checkpoint.
type Checkpoint struct {
	Turn       int    `json:"turn"`          // the last one it covers
	ByteOffset int64  `json:"byte_offset"`   // of the checkpoint's own line
	Hash       string `json:"hash"`          // SHA-256 of the bytes before the line, hex
	Sig        string `json:"sig,omitempty"` // of Hash; empty when the user has no key
	FP         string `json:"fp,omitempty"`  // fingerprint of the key
	TS         string `json:"ts"`            // when it was made, as timestamp
}
