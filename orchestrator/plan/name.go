package plan

import (
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
)

// maxNameRunes keeps a thread's name on one line of a table.
const maxNameRunes = 60

// Name is what people see in lists: the directive's
// description or title, else the first words of its prompt.
func (p *Plan) Name(env map[string]string) string {
	for _, text := range []string{
		p.Doc.Description, p.Doc.Title, inputs.Body(p.Doc, p.Inputs, env),
	} {
		if name := FirstWords(text); name != "" {
			return name
		}
	}
	return p.Found.ID
}

// FirstWords shortens a text to whole words of one line.
func FirstWords(text string) string {
	var name string
	for word := range strings.FieldsSeq(text) {
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
