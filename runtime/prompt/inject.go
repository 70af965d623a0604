package prompt

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/guard"
)

// Fill returns a copy of a directive whose body and prose have the placeholders
// of its inputs and of the environment filled in.
func Fill(doc *item.DirectiveDoc, values map[string]any, env map[string]string) *item.DirectiveDoc {
	filled := *doc
	filled.Body, filled.After = inputs.Body(doc, values, env), ""
	for _, text := range []*string{&filled.Success, &filled.Failure} {
		*text = inputs.Interpolate(*text, values, env)
	}
	return &filled
}

// Task is [Fill] with the inputs that the body has no place for below it, so that none
// is lost.
func Task(doc *item.DirectiveDoc, values map[string]any, env map[string]string) *item.DirectiveDoc {
	return withUnplaced(Fill(doc, values, env), doc, values)
}

// TaskOf is [Task] with a body that has been filled in.
func TaskOf(doc *item.DirectiveDoc, values map[string]any, env map[string]string, body string) *item.DirectiveDoc {
	filled := Fill(doc, values, env)
	filled.Body = inputs.Below(body, doc.After)
	return withUnplaced(filled, doc, values)
}

func withUnplaced(filled, doc *item.DirectiveDoc, values map[string]any) *item.DirectiveDoc {
	if list := unplaced(doc, values); list != "" {
		filled.Body = strings.TrimSpace(filled.Body + "\n\n" + list)
	}
	return filled
}

// unplaced lists the declared inputs that have a value and no place in the body.
func unplaced(doc *item.DirectiveDoc, values map[string]any) string {
	placed := inputs.Placed(doc)
	var b strings.Builder
	for _, in := range doc.Inputs {
		if value := values[in.Name]; value != nil && !placed(in.Name) {
			fmt.Fprintf(&b, "%s: %s\n", in.Name, oneLine(value))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "<inputs>\n" + b.String() + "</inputs>"
}

// oneLine is a value that cannot pass for another line of a list, or for its end.
func oneLine(value any) string {
	text := item.Text(value)
	if _, isText := value.(string); !isText || !strings.ContainsAny(text, "\n\r<") {
		return text
	}
	quoted, err := json.Marshal(text) // which writes < as \u003c
	if err != nil {
		return ""
	}
	return string(quoted)
}

// Facts are what ${…} in context stands for when a prompt is made.
type Facts struct {
	Directive    string // id
	Text         string // what [Clean] makes of it, with its placeholders filled in
	Body         string // likewise
	ProjectPath  string
	Inputs       map[string]any
	Capabilities []string
	Thread       *ThreadFacts // nil where there is no thread
}

// ThreadFacts are the facts that only a thread has.
type ThreadFacts struct {
	Model    string // "provider/model"
	ParentID thread.ID
	Depth    int // of the thread below its root
	Limits   thread.Limits
}

// Data are the facts under the names by which directives, knowledge and hooks
// know them.
func (f Facts) Data() (map[string]any, error) {
	data := map[string]any{
		"directive": f.Directive, "directive_text": f.Text, "directive_body": f.Body, "project_path": f.ProjectPath, "inputs": f.Inputs,
		"capabilities_summary": "none",
	}
	if len(f.Capabilities) > 0 {
		data["capabilities_summary"] = strings.Join(f.Capabilities, ", ")
	}
	if t := f.Thread; t != nil {
		data["model"], data["parent_thread_id"], data["depth"], data["limits"] = t.Model, t.ParentID, t.Depth, t.Limits
		data["spend_limit"], data["max_turns"] = t.Limits.Spend, t.Limits.Turns
	} else {
		maps.Copy(data, withoutThread())
	}
	plain, err := expr.Plain(data)
	if err != nil {
		return nil, err
	}
	data, _ = plain.(map[string]any) // of a map it makes a map
	return data, nil
}

// withoutThread stands for the facts that only a thread has, so that context
// written for threads reads well where there is none.
func withoutThread() map[string]any {
	limits := make(map[string]any)
	for _, name := range item.LimitNames() {
		limits[name] = "no limit"
	}
	return map[string]any{
		"model": "your own", "parent_thread_id": "", "depth": 0, "limits": limits,
		"spend_limit": "no limit", "max_turns": "no limit",
	}
}

// Injected is a knowledge item as it went into a prompt.
type Injected struct {
	KnowledgeRef
	Bytes int // of the text in the prompt
}

// Inject makes the blocks of the context: each item's text without metadata, with
// ${…} filled in from data, in an element that names it. A template that data
// have nothing for is empty in the text, and a warning.
func (c *Composition) Inject(data map[string]any) (blocks Blocks, injected []Injected, warnings []string) {
	for _, ref := range c.Context {
		body, missing := ref.Doc.Body, []string(nil)
		if !item.IsThreadRecord(item.Knowledge, ref.ID) { // which nobody wrote to be filled in
			body, missing = expr.ExpandText(body, data)
		}
		text := Wrap(ref.Doc.Name, ref.ID, body)
		blocks.Add(ref.Position, text)
		injected = append(injected, Injected{KnowledgeRef: ref, Bytes: len(text)})
		if len(missing) > 0 {
			warnings = append(warnings, fmt.Sprintf("knowledge %s: there is nothing to put in for ${%s}",
				ref.ID, strings.Join(union(nil, missing), "}, ${")))
		}
	}
	return blocks, injected, warnings
}

// Wrap puts the text of a knowledge item, or what a hook's tool gave, into an
// element that names it, and that the text cannot end.
func Wrap(name, id, body string) string {
	tag := element(name)
	return fmt.Sprintf("<%s id=\"%s\" type=\"knowledge\">\n%s\n</%s>", tag, attribute(id), guard.Inside(tag, strings.Trim(body, "\n")), tag)
}

// element makes the name of an element of what people call their knowledge.
func element(name string) string {
	tag := strings.Map(func(r rune) rune {
		if isLetter(r) || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, name)
	if tag == "" || !isLetter(rune(tag[0])) {
		return "Knowledge" + tag
	}
	return tag
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' }
