package parse

import (
	"slices"
	"strings"
	"unicode"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// actions lists the elements of <permissions> that grant something.
func actions() []string { return []string{"execute", "fetch", "search", "sign"} }

// readPermissions turns <permissions> into capabilities of the form
// rye.<action>.<type>.<dotted id pattern>. Anything that is not understood is an error:
// guessing here would grant or deny the wrong thing.
func readPermissions(doc *item.DirectiveDoc, e *element) error {
	p := &doc.Permissions
	p.Declared = true
	all, err := isEverything(e)
	if err != nil {
		return err
	}
	if all {
		grant(p, "rye.*")
	}
	for _, c := range e.children {
		switch {
		case slices.Contains(actions(), c.name):
			err = readAction(p, c)
		case c.name == "acknowledge":
			err = readAcknowledge(p, c)
		default:
			err = c.errorf("<%s> is not a permission; valid are <%s> and <acknowledge risk=\"…\">",
				c.name, said(strings.Join(actions(), ">, <")))
		}
		if err != nil {
			return err
		}
	}
	p.Capabilities = once(p.Capabilities)
	return nil
}

// once leaves out what has been there before.
func once(list []string) []string {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(s string) bool {
		before := seen[s]
		seen[s] = true
		return before
	})
}

// readAction reads one of <execute>, <fetch>, <search> and <sign>.
func readAction(p *item.Permissions, e *element) error {
	all, err := isEverything(e)
	if err != nil {
		return err
	}
	if all {
		grantAction(p, e.name, "*")
	}
	for _, c := range e.children {
		kind, err := item.ParseKind(c.name)
		if err != nil {
			return c.errorf("<%s> cannot stand in <%s>; valid are <directive>, <tool>, <knowledge> with a pattern, or *",
				c.name, e.name)
		}
		pattern := strings.ReplaceAll(c.prose(), "/", ".")
		if pattern == "" || strings.ContainsFunc(pattern, notInPattern) {
			return c.errorf("<%s> in <%s> needs an item id or a pattern such as rye.file-system.*, not %q", c.name, e.name, c.prose())
		}
		grantAction(p, e.name, string(kind)+"."+pattern)
	}
	return nil
}

func readAcknowledge(p *item.Permissions, e *element) error {
	risk, _ := e.attr("risk")
	if risk == "" {
		return e.errorf("<acknowledge> needs the attribute risk, the tier it accepts")
	}
	p.Acknowledged = append(p.Acknowledged, item.Acknowledgement{Risk: risk, Reason: e.prose()})
	return nil
}

// isEverything reports whether the element's own text is "*"; other text has no
// meaning there.
func isEverything(e *element) (bool, error) {
	switch text := strings.TrimSpace(e.text); text {
	case "":
		return false, nil
	case "*":
		return true, nil
	default:
		return false, e.errorf("<%s> holds the text %.40q; it may hold elements or *", e.name, text)
	}
}

// grantAction grants an action. Finding and reading are one permission, so
// search and fetch imply each other.
func grantAction(p *item.Permissions, action, what string) {
	grant(p, "rye."+action+"."+what)
	switch action {
	case "fetch":
		grant(p, "rye.search."+what)
	case "search":
		grant(p, "rye.fetch."+what)
	}
}

func grant(p *item.Permissions, capability string) {
	p.Capabilities = append(p.Capabilities, capability)
}

// notInPattern reports characters that no item id and no pattern has.
func notInPattern(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`\<>"'`, r)
}
