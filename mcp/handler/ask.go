package handler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// asker puts questions of threads, and about starting them, to the person who
// uses the client.
func asker(call server.Call) func(context.Context, thread.Question) (thread.Answer, error) {
	person := personAt(call)
	return func(ctx context.Context, q thread.Question) (thread.Answer, error) {
		form, err := formOf(q)
		if err != nil {
			return thread.Answer{}, err
		}
		result, err := server.Elicit(ctx, form)
		if err != nil {
			return thread.Answer{}, notAsked(err)
		}
		answer, err := answerOf(q, result)
		answer.By = person
		return answer, err
	}
}

// personAt is who answers through a client, in words.
func personAt(call server.Call) string {
	if call.Session.Client == "" {
		return "the person"
	}
	return "the person at " + call.Session.Client
}

// notAsked is an error of asking as those who have the question know it.
func notAsked(err error) error {
	if errors.Is(err, server.ErrNoElicitation) {
		return fmt.Errorf("%w: %w", action.ErrNobodyToAsk, err)
	}
	if _, later := errors.AsType[*server.InputRequiredError](err); later {
		return fmt.Errorf("%w: %w", action.ErrCallAgain, err)
	}
	return err
}

// errLeft means that the person has left a question to others.
var errLeft = fmt.Errorf("%w: the person has put the question away", action.ErrNobodyToAsk)

// answerOf reads what the person has filled in.
func answerOf(q thread.Question, result server.ElicitResult) (thread.Answer, error) {
	accepted := result.Action == server.ActionAccept
	switch {
	case q.Kind == thread.AskRisk && accepted:
		return thread.Answer{Decision: thread.Accept}, nil
	case q.Kind == thread.AskRisk:
		return thread.Answer{Decision: thread.Decline}, nil
	case q.Kind == thread.AskHandoff && result.Action == server.ActionDecline:
		return thread.Answer{Decision: thread.Decline}, nil
	case !accepted:
		return thread.Answer{}, errLeft
	}
	content := map[string]any{}
	if err := json.Unmarshal(result.Content, &content); err != nil {
		return thread.Answer{}, fmt.Errorf("answer of the person: %w", err)
	}
	said, _ := content[decisionField].(string)
	answer := thread.Answer{Decision: thread.Decision(said)}
	if q.Kind == thread.AskHandoff && answer.Decision == thread.Accept {
		answer.Summary, _ = content[summaryField].(string)
		if sameWords(answer.Summary, proposed(q)) { // a field of one line has lost its line breaks
			answer.Summary = ""
		}
	}
	if answer.Decision != thread.Raise {
		return answer, nil
	}
	answer.Limits = map[string]float64{}
	for name, value := range content {
		if number, ok := value.(float64); ok && number > 0 { // 0 is a field that was left alone
			answer.Limits[name] = number
		}
	}
	return answer, nil
}

func sameWords(a, b string) bool { return slices.Equal(strings.Fields(a), strings.Fields(b)) }

// proposed is the summary that stands in the form of a handoff, to be edited: what is
// proposed, unless that was cut.
func proposed(q thread.Question) string {
	if q.Proposal == nil || len(q.Proposal.Summary) >= thread.MaxSummary {
		return ""
	}
	return q.Proposal.Summary
}

// The fields of a form that have the decision, and the summary of a handoff.
const (
	decisionField = "decision"
	summaryField  = "summary"
)

// field is a property of a form.
type field struct {
	Type        string            `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description,omitempty"`
	Enum        []thread.Decision `json:"enum,omitempty"`
	Default     string            `json:"default,omitempty"` // clients know it since revision 2025-11-25
}

// formOf is a question as a form. Its content depends on the question alone, so
// that the same question is the same form when a call is made again.
func formOf(q thread.Question) (server.ElicitRequest, error) {
	if q.Kind == thread.AskRisk {
		return server.ElicitRequest{Message: q.Text}, nil
	}
	var meanings []string
	for _, d := range q.Options {
		meanings = append(meanings, fmt.Sprintf("%s: %s", d, d.Means(q)))
	}
	fields := map[string]field{decisionField: {
		Type: "string", Title: "Decision", Enum: q.Options, Description: strings.Join(meanings, "; "),
	}}
	if slices.Contains(q.Options, thread.Raise) && q.Limits != nil {
		maps.Copy(fields, limitFields(*q.Limits, q.Most))
	}
	if q.Kind == thread.AskHandoff {
		fields[summaryField] = field{
			Type: "string", Title: "Summary", Description: "of accept: another text for the new thread; empty: as proposed", Default: proposed(q),
		}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": fields, "required": []string{decisionField}})
	message := fmt.Sprintf("%s\nWithout an answer until %s: %s.", q.Text, q.DeadlineAt.UTC().Format("15:04:05 UTC"), q.Default)
	return server.ElicitRequest{Message: message, Schema: schema}, err
}

// limitFields are the limits that can keep a thread from its next turn.
func limitFields(now thread.Limits, most *thread.Limits) map[string]field {
	bounds := cmp.Or(most, &thread.Limits{})
	describe := func(value, bound any) string {
		text := fmt.Sprintf("of raise: the new value, now %v", value)
		if most != nil {
			text += fmt.Sprintf(", at most %v", bound)
		}
		return text
	}
	fields := map[string]field{}
	add := func(name, typ string, value, bound any) {
		fields[name] = field{Type: typ, Title: strings.ReplaceAll(name, "_", " "), Description: describe(value, bound)}
	}
	add("turns", "integer", now.Turns, bounds.Turns)
	add("tokens", "integer", now.Tokens, bounds.Tokens)
	add("spend", "number", now.Spend, bounds.Spend)
	add("duration_seconds", "number", now.DurationSeconds, bounds.DurationSeconds)
	return fields
}
