package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxAnswer is how many bytes of JSON an answer of a person may have.
const maxAnswer = 64 << 10

var (
	// ErrNoElicitation means that nobody can be asked through the client of this
	// call: it does not declare elicitation with forms, does not know it although
	// it does, or reads no stream that a question could go to.
	ErrNoElicitation = errors.New("client cannot ask the person")
	// ErrBadAnswer means that the client answered a question with something that
	// is no answer to it.
	ErrBadAnswer = errors.New("client gave no valid answer for the person")
)

// InputRequiredError means that a question goes to the person in place of the
// call's result, as revision 2026-07-28 has it. A handler returns it, wrapped or
// not. When the person has answered, the client makes the same call again, in
// which [Elicit] returns the answer.
type InputRequiredError struct {
	Key string // of the question
}

func (e *InputRequiredError) Error() string {
	return fmt.Sprintf("the call ends with the question %q to the person", e.Key)
}

// ElicitRequest is a question to the person who uses the client.
type ElicitRequest struct {
	// Key names the question among those of the call, and stays the same when
	// the call is made again. Empty: it is derived from the other fields.
	Key string

	// Message is for the person. It must not ask for secrets, which would pass
	// through the client.
	Message string

	// Schema is the JSON Schema of the answer: an object whose properties are
	// strings, numbers, integers, booleans or, as a choice of several from a list,
	// arrays, which clients know since revision 2025-11-25. Empty: the answer has no content.
	Schema json.RawMessage
}

// The answers of a person to a question.
const (
	ActionAccept  = "accept"  // answered
	ActionDecline = "decline" // refused
	ActionCancel  = "cancel"  // put away without a choice
)

// ElicitResult is what the person did with a question.
type ElicitResult struct {
	Action  string          // one of the Action constants
	Content json.RawMessage // an object that fits the schema; nil unless accepted
}

// CanElicit reports whether the client of the call that ctx belongs to can ask
// the person, as far as it is known.
func CanElicit(ctx context.Context) bool {
	r := requestFrom(ctx)
	switch {
	case r == nil:
		return false
	case mcpserver.IsModernRequest(ctx):
		return hasForms(*mcpserver.RequestProtocolInfoFromContext(ctx).ClientCapabilities)
	}
	s := r.conn.session
	return s.mayElicit() && s.reach(ctx) != nil
}

// hasForms reports whether a client declares that it can show a form. One that
// declares elicitation and no mode of it means forms.
func hasForms(can mcp.ClientCapabilities) bool {
	return can.Elicitation != nil && (can.Elicitation.Form != nil || can.Elicitation.URL == nil)
}

// Elicit has the client of the call that ctx belongs to ask the person, and
// waits for the answer until ctx ends or the call does. It may be called from
// several goroutines of a handler.
//
// It fails with [ErrNoElicitation] where nobody can be asked, with
// [ErrBadAnswer] when the answer is none, and with the cause of ctx.
//
// For revision 2026-07-28 it does not wait: it returns an [*InputRequiredError],
// and the handler runs again from its start when the answer is there. So a
// handler asks before it changes anything, or finds again what it has begun. An
// answer counts once, for the same call, and only for a question with the same
// key, message and schema; it has an hour to come.
func Elicit(ctx context.Context, req ElicitRequest) (ElicitResult, error) {
	r := requestFrom(ctx)
	if r == nil || !CanElicit(ctx) {
		return ElicitResult{}, ErrNoElicitation
	}
	if err := req.complete(); err != nil {
		return ElicitResult{}, err
	}
	if mcpserver.IsModernRequest(ctx) {
		return r.answerTo(req)
	}
	return r.conn.session.elicit(ctx, req)
}

// elicit sends a question to the client and waits for the answer.
func (s *session) elicit(ctx context.Context, q ElicitRequest) (ElicitResult, error) {
	raw, err := s.ask(ctx, mcp.MethodElicitationCreate, q.params())
	if failure, ok := errors.AsType[*clientError](err); ok {
		if failure.code == mcp.METHOD_NOT_FOUND {
			s.neverElicit()
			return ElicitResult{}, fmt.Errorf("%w: %w", ErrNoElicitation, err)
		}
		return ElicitResult{}, fmt.Errorf("%w: %w", ErrBadAnswer, err)
	}
	if errors.Is(err, errNoReader) { // its stream closed just now
		return ElicitResult{}, ErrNoElicitation
	}
	if err != nil {
		return ElicitResult{}, err
	}
	return q.parse(raw)
}

// complete fills in what was left out, and checks the rest.
func (q *ElicitRequest) complete() error {
	if q.Message == "" {
		return errors.New("question to the person: it has no message")
	}
	if len(q.Schema) == 0 {
		q.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	var schema struct {
		Type       string `json:"type"`
		Properties map[string]struct {
			Type  string `json:"type"`
			Items struct {
				Enum  []any `json:"enum"`
				AnyOf []any `json:"anyOf"`
			} `json:"items"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(q.Schema, &schema); err != nil {
		return fmt.Errorf("question to the person: schema: %w", err)
	}
	if schema.Type != "object" || schema.Properties == nil {
		return errors.New("question to the person: its schema is not that of an object with properties")
	}
	for name, property := range schema.Properties {
		choice := property.Type == "array" && (len(property.Items.Enum) > 0 || len(property.Items.AnyOf) > 0)
		if !choice && !slices.Contains([]string{"string", "number", "integer", "boolean"}, property.Type) {
			return fmt.Errorf("question to the person: %s is not a string, number, integer, boolean or a choice of several", name)
		}
	}
	if q.Key == "" {
		q.Key = "question-" + q.digest()
	}
	return nil
}

// params are the parameters of elicitation/create. They name no mode, which
// clients before revision 2025-11-25 do not know; without one it is a form.
func (q *ElicitRequest) params() mcp.ElicitationParams {
	return mcp.ElicitationParams{Message: q.Message, RequestedSchema: q.Schema}
}

// parse reads what the client answered.
func (q *ElicitRequest) parse(raw json.RawMessage) (ElicitResult, error) {
	if len(raw) > maxAnswer {
		return ElicitResult{}, fmt.Errorf("%w: it has %d bytes and at most %d are taken", ErrBadAnswer, len(raw), maxAnswer)
	}
	var answer struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return ElicitResult{}, fmt.Errorf("%w: %w", ErrBadAnswer, err)
	}
	switch answer.Action {
	case ActionDecline, ActionCancel:
		return ElicitResult{Action: answer.Action}, nil
	case ActionAccept:
	default:
		return ElicitResult{}, fmt.Errorf("%w: there is no action %q", ErrBadAnswer, item.Clip(answer.Action, 100))
	}
	if isNull(answer.Content) {
		answer.Content = json.RawMessage("{}") // nothing had to be filled in
	}
	err := tool.Validate(q.Schema, answer.Content)
	if misfit, ok := errors.AsType[*tool.Fault](err); ok {
		// Only its text: as a fault it would blame the arguments of the call.
		return ElicitResult{}, fmt.Errorf("%w: in its content, %s", ErrBadAnswer, misfit.Message)
	}
	if err != nil {
		return ElicitResult{}, fmt.Errorf("question to the person: %w", err)
	}
	return ElicitResult{Action: ActionAccept, Content: bytes.Clone(answer.Content)}, nil
}

// mayElicit reports whether the client of a session can ask the person, as far
// as it has said.
func (s *session) mayElicit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.formless && hasForms(s.can)
}

// neverElicit notes that the client does not know elicitation after all.
func (s *session) neverElicit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.formless = true
}
