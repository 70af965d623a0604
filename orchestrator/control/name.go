package control

import (
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
)

// maxNameRunes keeps a thread's name on one line of a table.
const maxNameRunes = 60

// name is what people see in lists: the directive's
// description or title, else the first words of its prompt.
func (p *plan) name(env map[string]string) string {
	for _, text := range []string{
		p.doc.Description, p.doc.Title, inputs.Interpolate(p.doc.Body, p.inputs, env),
	} {
		if name := firstWords(text); name != "" {
			return name
		}
	}
	return p.found.ID
}

// firstWords shortens a text to whole words of one line.
func firstWords(text string) string {
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
