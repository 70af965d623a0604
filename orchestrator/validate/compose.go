package validate

import (
	"errors"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// checkExtends follows what the directive extends.
func checkExtends(l *list, d *directive) {
	line := d.line("")
	chain, err := d.composer.Chain(d.found, d.doc.Extends)
	if err != nil {
		code, try := CodeExtends, ""
		switch {
		case errors.Is(err, prompt.ErrCycle):
			code = CodeExtendsCycle
		case errors.Is(err, prompt.ErrChainTooLong):
			code = CodeExtendsLong
		case errors.As(err, new(*resolve.NotFoundError)):
			code = CodeExtendsMissing
			_, try = missing(err)
		}
		l.errorf(code, line, try, "%v", err)
	} else {
		d.chain = chain
	}
	for _, link := range d.chain {
		if link.Doc.Permissions.Declared {
			d.permissions, d.granter = link.Doc.Permissions, link.ID
			break
		}
	}
	for _, link := range d.ancestors() {
		if found, err := d.Resolver.Find(item.Directive, link.ID); err == nil {
			d.inherited(l, line, found)
		}
	}
	d.checkInherited(l, line)
}

// checkInherited finds context that an ancestor asks for and that cannot be had.
func (d *directive) checkInherited(l *list, line int) {
	if len(d.ancestors()) == 0 {
		return
	}
	_, err := d.composer.Compose(d.found, d.doc.Extends)
	if wrong, ok := errors.AsType[*prompt.ContextError](err); ok && wrong.Directive != d.found.ID {
		l.errorf(CodeContextMissing, line, "rye-mcp validate "+wrong.Directive, "what it extends cannot be used: %v", err)
	}
}

// positions are the elements of <context> that ask for knowledge.
var positions = []string{prompt.System, prompt.Before, prompt.After}

// checkContext looks at the knowledge that the directive asks for itself.
func checkContext(l *list, d *directive) {
	var asked []string
	for _, position := range positions {
		for e := range d.at("metadata/context/" + position) {
			id := e.Text
			if slices.Contains(asked, id) {
				l.warnf(CodeContextTwice, e.Line, "remove one of them", "the knowledge %s stands in the context twice", id)
				continue
			}
			asked = append(asked, id)
			if by := d.suppressor(id); by != "" {
				l.warnf(CodeContextSuppressed, e.Line, "remove it, or the <suppress>",
					"the knowledge %s is never part of the prompt: directive %s suppresses it", id, by)
				continue
			}
			d.checkKnowledge(l, e.Line, id)
		}
	}
}

// suppressor is the directive of the chain that suppresses an id.
func (d *directive) suppressor(id string) string {
	for _, link := range d.chain {
		if slices.Contains(link.Doc.Context.Suppress, id) {
			return link.ID
		}
	}
	return ""
}

// checkKnowledge looks at one item of the context.
func (d *directive) checkKnowledge(l *list, line int, id string) {
	found, err := d.Resolver.Find(item.Knowledge, id)
	if err != nil {
		message, try := missing(err)
		l.errorf(CodeContextMissing, line, try, "the context cannot be had: %s", message)
		return
	}
	d.inherited(l, line, found)
	doc, err := found.Knowledge()
	if err != nil {
		l.errorf(CodeContextBroken, line, "", "the context cannot be read: %v", err)
		return
	}
	started := told{names: hook.EventThreadStarted.Data(), inputs: d.declares}
	for _, template := range expr.Templates(doc.Body) {
		if !started.has(template) {
			l.warnf(CodeContextData, line, d.dataTry(started, template), "the knowledge %s says ${%s}, which a thread's first message has no data for",
				id, orOf(template))
		}
	}
}

// checkSuppressed finds what is suppressed and is not there anyhow.
func checkSuppressed(l *list, d *directive) {
	hooks := map[string]bool{}
	for _, h := range d.hooks.All() {
		hooks[h.ID] = true
	}
	for _, link := range d.chain {
		for _, h := range link.Doc.Hooks {
			hooks[h.ID] = true
		}
	}
	for e := range d.at("metadata/context/suppress") {
		if hooks[e.Text] {
			continue
		}
		if err := d.exists(item.Knowledge, e.Text); err != nil {
			_, try := missing(err)
			l.warnf(CodeSuppressUnknown, e.Line, try, "there is neither knowledge nor a hook %s to suppress", e.Text)
		}
	}
}
