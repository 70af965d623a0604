package validate

import (
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
)

// foreignPlaceholder is what people write for {input:name}: with the name behind
// inputs. or input., with two brackets, with a dollar sign, with spaces, or bare.
var foreignPlaceholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$?\{{1,2}\s*(inputs?\s*[.:]\s*)?([A-Za-z_][A-Za-z0-9_-]*)\s*\}{1,2}`)
})

// checkLiteral finds placeholders in other forms than those that are filled in.
func checkLiteral(l *list, d *directive) {
	first := once()
	for _, t := range d.filled() {
		shown := withoutExamples(t.text)
		calls := callsIn(shown)
		for _, m := range foreignPlaceholder().FindAllStringSubmatch(shown, maxCalls) {
			text, named, name := m[0], m[1] != "", m[2]
			line := d.search(text, t.line)
			if !named && !strings.HasPrefix(text, "$") && !strings.HasPrefix(text, "{{") { // prose may mean something else by it
				if line = d.inCall(calls, text); line == 0 {
					continue
				}
			}
			switch {
			case len(inputs.Uses(text)) > 0, !first(text):
			case d.declares(name):
				l.warnf(CodePlaceholder, line, "write {input:"+name+"}", "%s stays as it is", text)
			case named:
				l.warnf(CodePlaceholder, line, d.declareOr(name), "%s stays as it is, and the input %s is not declared", text, name)
			}
		}
	}
}

// callsIn are the calls of our tools in a text.
func callsIn(text string) []string {
	var all []string
	for _, at := range calledName().FindAllStringIndex(text, maxCalls) {
		if name := text[at[0]:at[1]]; strings.Contains(name, "rye_") {
			all = append(all, name+argumentsOf(text[at[1]:]))
		}
	}
	return all
}

// inCall is the line of a text in the first of some calls that holds it; 0 when none
// does.
func (d *directive) inCall(calls []string, text string) int {
	for _, c := range calls {
		for line := range strings.Lines(c) {
			if strings.Contains(line, text) {
				return d.search(strings.TrimRight(line, "\n"), d.bodyLine())
			}
		}
	}
	return 0
}
