package validate

import (
	"context"
	"iter"
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// directive is a directive that has been read.
type directive struct {
	*world
	found   *resolve.Found
	doc     *item.DirectiveDoc
	outline *parse.Outline
	lines   []string
	chain   []prompt.Link // what it extends, itself first; only itself when that cannot be had
	// permissions are its own or those it inherits from the directive granter; not
	// declared when nobody declares any, so that only a parent can give some.
	permissions item.Permissions
	granter     string
	unmatched   []string // capabilities of its own that no item matches
}

// validateDirective runs all checks of a directive. The error is that of reading
// it.
func validateDirective(ctx context.Context, l *list, w *world, found *resolve.Found) error {
	doc, err := found.Directive()
	if err != nil {
		return err
	}
	outline, err := found.Outline()
	if err != nil {
		return err
	}
	d := &directive{
		world: w, found: found, doc: doc, outline: outline, lines: strings.Split(string(found.Content), "\n"),
		chain: []prompt.Link{{ID: found.ID, Path: found.Path, Space: found.Space, Doc: doc}},
	}
	checks := []func(*list, *directive){
		checkNames,
		checkExtends, // the others look at what is inherited
		checkPlaceholders, checkLiteral, checkUnusedInputs, checkContext, checkSuppressed, checkHooks, checkCapabilities, checkRisk,
		checkLimits, checkRetry, checkContinuation, checkSteps, checkCalls,
	}
	if found.Detached != nil { // of another program, whose text is not about us
		checks = []func(*list, *directive){checkNames, checkCapabilities, checkRisk, checkLimits}
		d.permissions, d.granter = doc.Permissions, found.ID
	}
	for _, check := range checks {
		check(l, d)
	}
	checkModel(ctx, l, d)
	return nil
}

// checkNames finds names that the format does not know. Those that a thread is not
// started with are errors.
func checkNames(l *list, d *directive) {
	for _, name := range d.doc.UnknownNames(d.found.ID) {
		level := Warning
		if name.Part != "" {
			level = Error
		}
		code := CodeUnknownName
		if d.found.Detached != nil {
			code = CodeForeign
		}
		l.add(level, code, name.Line, meant(name.Nearest), name.Text)
	}
}

// at lists the elements at a path.
func (d *directive) at(path string) iter.Seq[parse.Element] {
	return func(yield func(parse.Element) bool) {
		for _, e := range d.outline.Elements {
			if e.Path == path && !yield(e) {
				return
			}
		}
	}
}

// line is that of the first element at one of the paths, else that of the root.
func (d *directive) line(paths ...string) int {
	for _, path := range paths {
		for e := range d.at(path) {
			return e.Line
		}
	}
	return d.outline.Elements[0].Line
}

// lineOf is that of the element at a path whose attribute name or text is this.
func (d *directive) lineOf(path, text string) int {
	for e := range d.at(path) {
		if e.Name == text || e.Text == text {
			return e.Line
		}
	}
	return d.line(path)
}

// bodyLine is where the body begins.
func (d *directive) bodyLine() int {
	for e := range d.at("process") {
		return e.Line
	}
	return d.outline.Body
}

// search is the first line from one on that holds a text, else that one.
func (d *directive) search(text string, from int) int {
	for i := max(0, from-1); i < len(d.lines); i++ {
		if strings.Contains(d.lines[i], text) {
			return i + 1
		}
	}
	return from
}

// ancestors are what the directive extends.
func (d *directive) ancestors() []prompt.Link { return d.chain[1:] }

// lacks names the capability that the directive needs for a call and has not;
// empty where it has, or where only its parent can say.
func (d *directive) lacks(primary string, kind item.Kind, id string) string {
	if !d.permissions.Declared || id == action.DirectiveReturnID {
		return ""
	}
	grant := permission.Grant{Own: d.permissions.Capabilities}
	required := permission.Required(primary, kind, id)
	if grant.Allows(required) || primary == permission.Execute && kind == item.Directive && permission.CanSpawn(grant, id) == nil {
		return ""
	}
	return required
}

// grants is the element that would give a capability.
func grants(primary string, kind item.Kind, id string) string {
	return "add <" + primary + "><" + string(kind) + ">" + dotted(id) + "</" + string(kind) + "></" + primary + "> to its <permissions>"
}

// opaque are the elements of a body that show something.
var opaque = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)<template\b.*?</template>|<example\b.*?</example>|<raw\b.*?</raw>`)
})

// withoutExamples is the text that is meant for whoever runs the directive, without
// what stands in opaque elements and between fences.
func withoutExamples(text string) string {
	const mark = "```"
	var out strings.Builder
	fence := "" // the one we are in
	for line := range strings.Lines(opaque().ReplaceAllString(text, "")) {
		trimmed := strings.TrimSpace(line)
		run := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		switch {
		case fence == "" && strings.HasPrefix(run, mark):
			fence = run
		case fence == "":
			out.WriteString(line)
		case run == trimmed && len(run) >= len(fence):
			fence = ""
		}
	}
	return out.String()
}

// once reports whether it is asked about a text for the first time.
func once() func(text string) bool {
	seen := map[string]bool{}
	return func(text string) bool {
		if seen[text] {
			return false
		}
		seen[text] = true
		return true
	}
}
