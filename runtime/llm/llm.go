// Package llm is the boundary to language models: one request shape, one
// streaming response shape and one error type for every vendor. The packages
// below it speak the vendors' wire protocols.
//
// Retries are not done here: the caller classifies the [APIError] and asks
// again.
package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Client asks one model provider.
type Client interface {
	// Stream sends the request and calls sink, in order and on the calling
	// goroutine, for every piece of the answer as it arrives. It returns the
	// whole answer; when it returns an error, Usage of the response holds what
	// the provider had reported until then. Errors of the provider or of the
	// way to it are *APIError; a cancelled ctx gives an error wrapping ctx's
	// cause.
	Stream(ctx context.Context, req Request, sink func(Delta)) (Response, error)
}

// Request is one call of a model. The parts that the next call repeats (system, tools,
// the messages so far) are marked for prompt caching where the vendor has it.
type Request struct {
	Model     string // the vendor's model id
	System    string
	Messages  []Message
	Tools     []Tool
	MaxTokens int // output allowance
	Turn      int // which answer of its thread this asks for, from 1; not sent
	// CacheKey is the same for the calls that can share a cached prefix, at most 64
	// bytes; vendors that ask for one are sent it. Empty: none.
	CacheKey string
	// Effort is how much the model is to think, in the vendor's word; empty: as it does
	// by itself.
	Effort string
	// Sent, when not nil, is called once the whole request has left, with the size of its
	// body, or 0 where that is not known: from then on the provider can bill what it was
	// given. It may be called on any goroutine.
	Sent func(bytes int64)
}

// Role says who speaks.
type Role string

// The roles of a conversation. Tool results travel in user messages.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one entry of a conversation.
type Message struct {
	Role   Role    `json:"role"`
	Blocks []Block `json:"blocks"`
}

// Text returns a message of one text block.
func Text(role Role, text string) Message {
	return Message{Role: role, Blocks: []Block{{Type: TextBlock, Text: text}}}
}

// TextOf joins the text of blocks, as the result of a thread is made of an answer.
func TextOf(blocks []Block) string {
	var parts []string
	for _, b := range blocks {
		if b.Type == TextBlock && strings.TrimSpace(b.Text) != "" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// BlockType tells which fields of a block are set.
type BlockType string

// The kinds of block.
const (
	TextBlock       BlockType = "text"        // Text; Signature, where the vendor signs texts
	ReasoningBlock  BlockType = "reasoning"   // Text, Signature
	ToolUseBlock    BlockType = "tool_use"    // ToolCallID, ToolName, Input; Signature, where the vendor signs calls
	ToolResultBlock BlockType = "tool_result" // ToolCallID, Text, IsError, Images, Content
	ImageBlock      BlockType = "image"       // Images, in a user message
)

// Block is a piece of a message.
type Block struct {
	Type      BlockType `json:"type"`
	Text      string    `json:"text,omitempty"`
	Signature string    `json:"signature,omitempty"` // the vendor's, given back unchanged
	// By is the model that has thought or signed this, as provider/model: nobody else
	// is given its reasoning and signatures. Empty: not known.
	By         string          `json:"by,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
	ToolName   string          `json:"tool_name,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"` // as the model wrote it; may be invalid JSON
	IsError    bool            `json:"is_error,omitempty"`
	Images     []Image         `json:"images,omitempty"`
	Content    *Content        `json:"content,omitempty"` // of a long tool result; never sent
}

// Content names the content of a tool result. It is a pointer in a [Block], as few have one.
type Content struct {
	Sum    string `json:"sum,omitempty"`     // of the text and the images that the result has
	SameAs string `json:"same_as,omitempty"` // the text only refers to an earlier result of this sum
}

// ContentOf is a content with one of its fields; nil where both are empty.
func ContentOf(sum, sameAs string) *Content {
	if sum == "" && sameAs == "" {
		return nil
	}
	return &Content{Sum: sum, SameAs: sameAs}
}

// Sum names what the block has as the content of a result; empty where nothing does.
func (b Block) Sum() string {
	if b.Content == nil {
		return ""
	}
	return b.Content.Sum
}

// SameAs is the sum of an earlier result that the block only refers to; empty where it does not.
func (b Block) SameAs() string {
	if b.Content == nil {
		return ""
	}
	return b.Content.SameAs
}

// Image is a picture for the model to look at.
type Image struct {
	MediaType string `json:"media_type"` // image/png, image/jpeg, image/gif or image/webp
	Ref       string `json:"ref"`        // SHA-256 of Data in hex, which names it in the transcript
	Data      []byte `json:"-"`
}

// Tool is a function offered to the model.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of an object
}

// Delta is a piece of an answer that just arrived.
type Delta struct {
	Type BlockType // TextBlock or ReasoningBlock; ToolUseBlock for a call; empty with Usage
	Text string    // the new text, or the tool's name when a call begins
	// Hidden is the size of what arrived of a call's arguments, in bytes. They are
	// given with the whole answer.
	Hidden int
	Usage  *Usage // what the provider has counted so far; nil in all other pieces
}

// Bytes is the size of what arrived.
func (d Delta) Bytes() int64 { return int64(len(d.Text) + d.Hidden) }

// StopReason says why the model stopped.
type StopReason string

// The stop reasons, vendor-neutral.
const (
	StopEnd       StopReason = "end"
	StopToolUse   StopReason = "tool_use"
	StopMaxTokens StopReason = "max_tokens"
	StopRefusal   StopReason = "refusal"
	StopFailed    StopReason = "failed" // the vendor has broken the answer off
	StopOther     StopReason = "other"  // nobody knows whether the answer is whole
)

// Response is a whole answer.
type Response struct {
	Model      string // as the provider reports it
	Blocks     []Block
	StopReason StopReason
	StopWord   string // the vendor's own word, where StopReason says less
	Usage      Usage
	// Warnings say what of the request was left out, because the provider refused it.
	Warnings []string
}

// Usage is what the provider reports; the four numbers do not overlap.
type Usage struct {
	InputTokens      int64 `json:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	CacheReadTokens  int64 `json:"cache_read_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	// Reported is false when the provider said nothing, so that the caller must
	// assume the worst.
	Reported bool `json:"reported"`
}

// ContextTokens is what the call and its answer occupy of the context window.
func (u Usage) ContextTokens() int64 {
	return thread.Sum(u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens)
}

// Input is what the call was given, whatever it is billed as.
func (u Usage) Input() int64 { return thread.Sum(u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens) }

// APIError is a failed call.
type APIError struct {
	Status    int         // HTTP status; 0 when there was no answer
	Type      string      // the vendor's error type, for example "rate_limit_error"
	Code      string      // the vendor's error code, where it has one
	Message   string      // the vendor's words, or what happened on the way
	Header    http.Header // of the answer, without cookies and secrets; nil when there was none
	MidStream bool        // the answer had begun
	Whole     bool        // there was an answer, in one piece instead of a stream
	Err       error       // the cause on the way, if any
}

func (e *APIError) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("model provider: %s", e.Message)
	}
	return fmt.Sprintf("model provider: HTTP %d %s: %s", e.Status, e.Type, e.Message)
}

func (e *APIError) Unwrap() error { return e.Err }
