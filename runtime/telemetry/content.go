package telemetry

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/timeline"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

const (
	// maxContent bounds a text that is told, in bytes, and maxContents all of a thread's.
	maxContent  = 16 << 10
	maxContents = 4 << 20
)

// content is what was said and done, as the transcript has it: what is masked there is
// masked here.
type content struct {
	system, first string
	answers       map[int64]string // of models, by the event that begins their span
	inputs        map[int64]string // of tools, likewise
	results       map[callKey]string
	asking        int64 // the event that began the open call of the model; 0: there is none
	total         int
}

type callKey struct {
	turn int
	id   string
}

// reading hands events on.
func (c *content) reading(events iter.Seq2[thread.Event, error]) iter.Seq2[thread.Event, error] {
	c.answers, c.inputs, c.results = map[int64]string{}, map[int64]string{}, map[callKey]string{}
	return func(yield func(thread.Event, error) bool) {
		for e, err := range events {
			if err == nil {
				c.take(e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (c *content) take(e thread.Event) {
	switch e.Type {
	case thread.EventSystemPrompt:
		told(e, func(p transcript.SystemPrompt) { c.system = c.keep(p.Text) })
	case thread.EventCognitionIn:
		told(e, func(p transcript.CognitionIn) {
			if c.first == "" {
				c.first = c.keep(textOf(p.Blocks))
			}
		})
	case thread.EventCognitionRequest:
		c.asking = e.Seq
	case thread.EventTokenDelta:
		if c.asking == 0 {
			c.asking = e.Seq
		}
	case thread.EventErrorClassified, thread.EventMessage:
		c.asking = 0
	case thread.EventCognitionOut:
		told(e, func(p transcript.CognitionOut) {
			if c.asking == 0 {
				c.asking = e.Seq
			}
			c.answers[c.asking] = c.keep(textOf(p.Blocks))
			c.asking = 0
		})
	case thread.EventToolCallStart:
		told(e, func(p transcript.ToolCallStart) { c.inputs[e.Seq] = c.keep(string(p.Input)) })
	case thread.EventToolCallResult:
		told(e, func(p transcript.ToolCallResult) { c.results[callKey{p.Turn, p.CallID}] = c.keep(p.Text) })
	}
}

// told takes what an event says; one that does not say what its type promises says
// nothing.
func told[T any](e thread.Event, take func(T)) {
	if p, err := transcript.Decode[T](e); err == nil {
		take(p)
	}
}

// keep bounds what is held of a thread.
func (c *content) keep(text string) string {
	text = strings.Clone(bounded(text))
	if c.total += len(text); c.total > maxContents {
		return ""
	}
	return text
}

func bounded(text string) string {
	if len(text) > maxContent {
		text = text[:maxContent] + "…"
	}
	return strings.ToValidUTF8(text, "")
}

// textOf is the text in the blocks of a message.
func textOf(blocks transcript.Blocks) string {
	var texts []string
	for _, block := range blocks {
		if block.Type == llm.TextBlock {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// message is one of the conventions' messages, as the JSON text that attributes hold.
func message(role, text string) string {
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	list := []struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}{{role, []part{{"text", text}}}}
	encoded, _ := json.Marshal(list) // texts
	return string(encoded)
}

// ofThread are what the thread was told first, and its result.
func (c *content) ofThread(a *attributes, o *thread.Outcome) {
	if c.system != "" {
		encoded, _ := json.Marshal([]map[string]string{{"type": "text", "content": c.system}}) // texts
		a.text("gen_ai.system_instructions", string(encoded))
	}
	if c.first != "" {
		a.text("gen_ai.input.messages", message("user", c.first))
	}
	if o != nil && o.Result != "" {
		a.text("gen_ai.output.messages", message("assistant", bounded(o.Result)))
	}
}

// ofSpan is what was said in a span.
func (c *content) ofSpan(a *attributes, s timeline.Span) {
	switch {
	case s.Kind == timeline.Model:
		if text := c.answers[s.Seq]; text != "" {
			a.text("gen_ai.output.messages", message("assistant", text))
		}
	case isCall(s):
		a.text("gen_ai.tool.call.arguments", c.inputs[s.Seq])
		a.text("gen_ai.tool.call.result", c.results[callKey{s.Turn, s.CallID}])
	case s.Kind == timeline.Question || s.Kind == timeline.Approval:
		a.text("rye.question", s.Detail)
	}
}
