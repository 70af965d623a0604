package plan

import (
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
)

// maxNameRunes keeps a thread's name on one line of a table.
const maxNameRunes = 60

// maxNamed is how much of a prompt is looked at for a name, in bytes.
const maxNamed = 4 << 10

// Name is what people see in lists of a thread that nobody has named: the first words
// of its prompt, else the directive's description or title. Secret inputs stand in it as
// their placeholders.
func (p *Plan) Name(env map[string]string) string {
	for _, text := range []string{
		inputs.Task(p.Doc, p.Inputs), inputs.Body(p.Doc, p.Inputs, env), p.Doc.Description, p.Doc.Title,
	} {
		if name := FirstWords(plainText(text)); name != "" {
			return name
		}
	}
	return p.Found.ID
}

// FirstWords shortens a text to whole words of one line, without characters that no
// name has.
func FirstWords(text string) string {
	var name string
	for word := range strings.FieldsSeq(thread.PlainText(text)) {
		longer := strings.TrimSpace(name + " " + word)
		if utf8.RuneCountInString(longer) > maxNameRunes {
			if name == "" {
				name = string([]rune(longer)[:maxNameRunes])
			}
			return name + "…"
		}
		name = longer
	}
	return name
}

// plainText is the beginning of a text without the marks of Markdown and XML: the
// rest reads as a sentence.
func plainText(text string) string {
	text = text[:min(len(text), maxNamed)]
	var plain strings.Builder
	for line := range strings.Lines(withoutTags(text)) {
		line = strings.TrimLeft(line, "#>*-+ \t")
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			continue
		}
		plain.WriteString(strings.NewReplacer("**", "", "`", "").Replace(line))
	}
	return plain.String()
}

// withoutTags leaves out what looks like a tag or comment of XML.
func withoutTags(text string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "<")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		inside, after, closed := strings.Cut(rest, ">")
		if !closed || inside == "" || !strings.ContainsAny(inside[:1], "/!?abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			out.WriteByte('<')
			text = rest
			continue
		}
		out.WriteByte(' ')
		text = after
	}
}
