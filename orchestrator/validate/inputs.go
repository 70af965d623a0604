package validate

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// filled is a text of a directive in which placeholders are replaced.
type filled struct {
	text string
	line int
}

func (d *directive) filled() []filled {
	return []filled{
		{d.doc.Body, d.bodyLine()},
		{d.doc.Success, d.line("outputs/success")},
		{d.doc.Failure, d.line("outputs/failure")},
	}
}

// outputPlaceholder is what people write who expect outputs to be filled in.
var outputPlaceholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{outputs?:[A-Za-z0-9_.-]+\}`) })

// checkPlaceholders finds placeholders that nothing is put into.
func checkPlaceholders(l *list, d *directive) {
	first := once()
	for _, t := range d.filled() {
		shown := withoutExamples(t.text)
		for _, use := range inputs.Uses(shown) {
			if first(use.Text) {
				d.checkUse(l, use, d.search(use.Text, t.line))
			}
		}
		for _, text := range outputPlaceholder().FindAllString(shown, -1) {
			if first(text) {
				l.warnf(CodePlaceholder, d.search(text, t.line), "", "%s stays as it is: outputs are what the model returns", text)
			}
		}
	}
	d.checkMisplaced(l)
}

func (d *directive) checkUse(l *list, use inputs.Use, line int) {
	switch {
	case use.Env != "" && !d.Env(use.Env):
		l.errorf(CodeEnvUnknown, line, "declare an input, and give it the value",
			"%s stays as it is: the environment value %s is not given to directives", use.Text, use.Env)
	case use.Stays && d.mayLack(use.Input):
		l.warnf(CodePlaceholder, line, "write {input:"+use.Input+"?}, or give the input a default",
			"%s stays as it is where the call gives no %s, which is optional", use.Text, use.Input)
	case use.Input == "" || d.declares(use.Input):
	case use.Stays:
		l.errorf(CodeInputUndeclared, line, d.declareOr(use.Input), "%s stays as it is: the input %s is not declared", use.Text, use.Input)
	default:
		l.warnf(CodeInputUndeclared, line, d.declareOr(use.Input),
			"%s is always its default: the input %s is not declared", use.Text, use.Input)
	}
}

// checkMisplaced finds placeholders in places where they are not replaced.
func (d *directive) checkMisplaced(l *list) {
	for _, e := range d.outline.Elements {
		var try string
		switch {
		case strings.HasPrefix(e.Path, "metadata/hooks/"):
			try = "write ${inputs.NAME}, which the events before the first turn have"
		case e.Path == "metadata/description", e.Path == "description", e.Path == "outputs/output":
			try = "move it into the body"
		default:
			continue
		}
		if strings.Contains(e.Text, "<") {
			continue // the elements within have their turn
		}
		for _, use := range inputs.Uses(e.Text) {
			l.warnf(CodePlaceholder, d.search(use.Text, e.Line), try, "%s stays as it is: <%s> is not filled in",
				use.Text, e.Path[strings.LastIndex(e.Path, "/")+1:])
		}
	}
}

func (d *directive) declares(input string) bool {
	return slices.ContainsFunc(d.doc.Inputs, func(in item.Input) bool { return in.Name == input })
}

// mayLack reports whether an input is said to be optional and has no default.
func (d *directive) mayLack(input string) bool {
	return slices.ContainsFunc(d.doc.Inputs, func(in item.Input) bool { return in.Name == input && in.Optional && in.Default == nil })
}

// declareOr says what to do about an input that is not declared.
func (d *directive) declareOr(input string) string {
	var names []string
	for _, in := range d.doc.Inputs {
		names = append(names, in.Name)
	}
	if near := item.Nearest(input, names); near != "" {
		return meant(near)
	}
	return `declare <input name="` + input + `"> in <inputs>`
}

// checkUnusedInputs finds inputs that nothing is made of.
func checkUnusedInputs(l *list, d *directive) {
	if len(d.doc.Inputs) == 0 {
		return
	}
	var used []string
	for _, t := range d.filled() {
		for _, use := range inputs.Uses(t.text) {
			used = append(used, use.Input)
		}
	}
	for _, path := range d.dataPaths() {
		switch root, rest, deeper := strings.Cut(path, "."); {
		case root == "inputs" && !deeper:
			return // all of them
		case root == "inputs":
			name, _, _ := strings.Cut(rest, ".")
			used = append(used, name)
		}
	}
	for _, in := range d.doc.Inputs {
		if !slices.Contains(used, in.Name) {
			l.warnf(CodeInputUnused, d.lineOf("inputs/input", in.Name), "use {input:"+in.Name+"} in the body, or remove it",
				"the body has no place for the input %s; its value follows it in a list", in.Name)
		}
	}
}

// dataPaths are the paths of all templates and conditions that see the data of
// the directive's thread.
func (d *directive) dataPaths() []string {
	hooks := d.hooks.All()
	var paths []string
	for _, link := range d.chain {
		for i, h := range link.Doc.Hooks {
			if one, err := hookOf(link, i, h); err == nil {
				hooks = append(hooks, one)
			}
		}
		for _, ids := range [][]string{link.Doc.Context.System, link.Doc.Context.Before, link.Doc.Context.After} {
			for _, id := range ids {
				for _, template := range expr.Templates(d.knowledgeBody(id)) {
					paths = append(paths, template...)
				}
			}
		}
	}
	for _, h := range hooks {
		paths = append(paths, h.Condition.Paths()...)
		for _, template := range templatesOf(h) {
			paths = append(paths, template...)
		}
	}
	return paths
}

// knowledgeBody is the text of an item; empty when it cannot be had.
func (d *directive) knowledgeBody(id string) string {
	found, err := d.Resolver.Find(item.Knowledge, id)
	if err != nil {
		return ""
	}
	doc, err := found.Knowledge()
	if err != nil {
		return ""
	}
	return doc.Body
}
