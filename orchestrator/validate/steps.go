package validate

import (
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

var (
	stepCall  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<(execute|fetch|search|sign)\b([^<>]*)>`) })
	attribute = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(item_type|item_id)\s*=\s*"([^"]*)"`) })
)

// checkSteps looks at the calls that the body tells the model to make as
// elements: <execute item_type="tool" item_id="…">.
func checkSteps(l *list, d *directive) {
	first := once()
	for _, call := range stepCall().FindAllStringSubmatch(withoutExamples(d.doc.Body), -1) {
		primary, kind, id := call[1], item.Kind(""), ""
		for _, a := range attribute().FindAllStringSubmatch(call[2], -1) {
			if a[1] == "item_id" {
				id = a[2]
			} else if k, err := item.ParseKind(a[2]); err == nil {
				kind = k
			}
		}
		if id == "" || strings.ContainsAny(id, "{}$*<") || !first(primary+" "+string(kind)+" "+id) {
			continue
		}
		d.checkStep(l, d.search(`"`+id+`"`, d.bodyLine()), primary, kind, id)
	}
}

func (d *directive) checkStep(l *list, line int, primary string, kind item.Kind, id string) {
	if err := d.exists(kind, id); err != nil {
		message, try := missing(err)
		l.warnf(CodeStepItem, line, try, "a step of the body: %s", message)
		return
	}
	if kind == "" {
		return
	}
	if required := d.lacks(primary, kind, id); required != "" {
		l.warnf(CodeStepCapability, line, grants(primary, kind, id), "a step of the body needs the capability %s", required)
	}
}
