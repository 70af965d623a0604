package thread

import (
	"encoding/json"
	"time"
)

// EventType names what a line of a transcript records.
type EventType string

// The events of a transcript.
const (
	EventThreadStarted      EventType = "thread_started"
	EventThreadContinued    EventType = "thread_continued"
	EventThreadResumed      EventType = "thread_resumed"
	EventThreadHandoff      EventType = "thread_handoff"
	EventThreadCompleted    EventType = "thread_completed"
	EventThreadError        EventType = "thread_error"
	EventThreadCancelled    EventType = "thread_cancelled"
	EventToolsOffered       EventType = "tools_offered"
	EventSystemPrompt       EventType = "system_prompt"
	EventContextInjected    EventType = "context_injected"
	EventCognitionIn        EventType = "cognition_in"
	EventCognitionRequest   EventType = "cognition_request"
	EventCognitionOut       EventType = "cognition_out"
	EventMessage            EventType = "message"
	EventTokenDelta         EventType = "token_delta"
	EventCognitionReasoning EventType = "cognition_reasoning"
	EventToolCallStart      EventType = "tool_call_start"
	EventToolCallResult     EventType = "tool_call_result"
	EventErrorClassified    EventType = "error_classified"
	EventRetry              EventType = "retry"
	EventLimitExceeded      EventType = "limit_exceeded"
	EventQuestionAsked      EventType = "question_asked"
	EventQuestionAnswered   EventType = "question_answered"
	EventChildThreadStarted EventType = "child_thread_started"
	EventHookFired          EventType = "hook_fired"
	EventDirectiveReturn    EventType = "directive_return"
	EventCheckpoint         EventType = "checkpoint"
)

// Event is one line of transcript.jsonl.
type Event struct {
	Timestamp time.Time       `json:"timestamp"` // UTC, RFC 3339 with milliseconds
	ThreadID  ID              `json:"thread_id"`
	Seq       int64           `json:"seq"` // from 1, without gaps
	Type      EventType       `json:"event_type"`
	Payload   json.RawMessage `json:"payload"` // a JSON object
}
