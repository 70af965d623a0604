package top

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rye-mcp/rye-mcp/orchestrator/board"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// option is an answer that can be given, and its key.
type option struct {
	key, name string
	decision  thread.Decision
	means     string
}

// optionsOf are the answers to a question. Each key is the first letter of its name that
// no other has.
func optionsOf(q *board.Question) (options []option) {
	for _, d := range q.Options {
		name := strings.ReplaceAll(string(d), "_", " ")
		options = append(options, option{keyOf(name, options), name, d, q.Means[d]})
	}
	if q.Kind == thread.AskHandoff && slices.Contains(q.Options, thread.Accept) {
		options = append(options, option{keyOf("edit", options), "edit", "", "it hands over with the summary as you edit it"})
	}
	return options
}

func keyOf(name string, taken []option) string {
	for _, r := range strings.ToLower(name) + "123456789" {
		key := string(r)
		if r != ' ' && !slices.ContainsFunc(taken, func(o option) bool { return o.key == key }) {
			return key
		}
	}
	return ""
}

// pressAnswer takes one of the options.
func (m *Model) pressAnswer(msg tea.KeyPressMsg) tea.Cmd {
	if msg.String() == "esc" {
		m.mode = normal
		return nil
	}
	row := m.stillAsking()
	if row == nil {
		return nil
	}
	q := row.Question
	for _, o := range optionsOf(q) {
		if o.key != msg.String() {
			continue
		}
		answer := Answer{ThreadID: row.ThreadID, QuestionID: q.ID, Decision: o.decision}
		if o.decision == "" {
			m.mode = normal
			m.busy++
			return m.actions.Edit(answer)
		}
		if o.decision == thread.Raise {
			m.mode, m.input = raising, newInput(suggestion(q))
			return nil
		}
		return m.do(func() Outcome { return m.actions.Answer(answer) })
	}
	return nil
}

// stillAsking is the thread whose question is being answered; nil, and that is said, when
// it does not ask that any more.
func (m *Model) stillAsking() *board.Row {
	row := m.targetRow()
	if row == nil {
		return nil
	}
	if row.Question == nil || row.Question.ID != m.asked {
		m.mode = normal
		m.say(Outcome{Error: nameOf(row) + " does not ask that any more: it was answered, or its time was up", Try: "a shows what it asks now"})
		return nil
	}
	return row
}

// raise lets a thread go on under the limits that were typed. Text that is no limit stays to be
// corrected.
func (m *Model) raise(row *board.Row, text string) tea.Cmd {
	if m.stillAsking() == nil {
		return nil
	}
	limits, problem := parseLimits(text)
	if problem != "" {
		m.say(Outcome{Error: problem, Try: "turns=30 spend=0.50"})
		return nil
	}
	answer := Answer{ThreadID: row.ThreadID, QuestionID: row.Question.ID, Decision: thread.Raise, Limits: limits}
	return m.do(func() Outcome { return m.actions.Answer(answer) })
}

// parseLimits reads name=value, between spaces or commas.
func parseLimits(text string) (limits map[string]float64, problem string) {
	limits = map[string]float64{}
	for _, pair := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, value, ok := strings.Cut(pair, "=")
		number, err := strconv.ParseFloat(value, 64)
		if !ok || name == "" || err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
			return nil, fmt.Sprintf("%q is not name=number", pair)
		}
		limits[name] = number
	}
	if len(limits) == 0 {
		return nil, "no limit is named"
	}
	return limits, ""
}

// suggestion is twice the limit that was reached, as far as it can be raised.
func suggestion(q *board.Question) string {
	name := strings.TrimSuffix(q.Code, "_exceeded")
	now, ok := q.Limits[name]
	if !ok {
		return ""
	}
	raised := 2 * now
	if most, bounded := q.Most[name]; bounded {
		raised = min(raised, most)
	}
	return name + "=" + strconv.FormatFloat(raised, 'f', -1, 64)
}
