package validate

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/palette"
)

// primaries are the primary actions by the names that texts call them by, with what
// capabilities call them.
var primaries = map[string]string{
	"rye_execute": permission.Execute, "rye_fetch": permission.Fetch, "rye_search": permission.Search, "rye_sign": permission.Sign,
}

// older are names that primary actions had.
var older = map[string]string{"rye_load": "rye_fetch", "rye_run": "rye_execute"}

var (
	// calledName is a name that is written like that of a tool, with the bracket.
	calledName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:\bmcp__[A-Za-z0-9-]+__)?\b[A-Za-z][A-Za-z0-9_]*\(`)
	})
	// callArgument is an argument that names an item, as Python and JSON have it.
	callArgument = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`["']?\b(item_type|item_id|directive_id|directive_name|directive)["']?\s*[=:]\s*["']([^"'\n]*)["']`)
	})
	clientPrefix = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:mcp__[A-Za-z0-9-]+__|rye__)`) })
)

// checkCalls looks at the calls of tools that the body tells the model to make as
// functions: rye_execute(item_id="…"), rye_file_system_read(path="…").
func checkCalls(l *list, d *directive) {
	first := once()
	text := withoutExamples(d.doc.Body)
	for _, at := range calledName().FindAllStringIndex(text, maxCalls) {
		name := text[at[0] : at[1]-1]
		c := call{written: name, name: name, arguments: argumentsOf(text[at[1]:])}
		if c.shown() || !first(name+"("+c.arguments) {
			continue
		}
		c.line = d.search(strings.SplitN(name+"("+c.arguments, "\n", 2)[0], d.bodyLine())
		d.checkCall(l, c)
	}
}

// call is one call that a body writes out.
type call struct {
	written   string // the name as it stands there
	name      string // the one that is meant
	arguments string
	line      int
}

// shown reports whether a call only speaks of the tool.
func (c call) shown() bool {
	arguments := strings.TrimSpace(c.arguments)
	return arguments == "..." || arguments == "…"
}

// maxCalls is how many calls of a body are looked at.
const maxCalls = 1000

// maxArguments is as much of a call as is looked at, in bytes.
const maxArguments = 16 << 10

// argumentsOf is what stands before the bracket that closes a call; where none does,
// the rest of the line.
func argumentsOf(text string) string {
	text = text[:min(len(text), maxArguments)]
	open, quote := 1, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"', c == '\'':
			quote = c
		case c == '(':
			open++
		case c == ')':
			if open--; open == 0 {
				return text[:i]
			}
		}
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func (d *directive) checkCall(l *list, c call) {
	tools := d.flatNames()
	known := func(name string) bool {
		return primaries[name] != "" || tools[name] != "" || name == palette.ReturnName || name == palette.ArtifactName
	}
	if !known(c.name) {
		c.name = withoutPrefix(c.name, known)
	}
	switch {
	case !known(c.name):
		d.unknownTool(l, c, tools)
		return
	case c.name != c.written:
		l.warnf(CodeCallName, c.line, "write "+c.name, "a call of the body: no tool of a thread is called %s", c.written)
	}
	if id := tools[c.name]; id != "" {
		d.needs(l, c.line, permission.Execute, item.Tool, id)
	} else if primaries[c.name] != "" {
		d.checkPrimary(l, c)
	}
}

// withoutPrefix is a known name without what a client, or nobody, puts before it.
func withoutPrefix(name string, known func(string) bool) string {
	plain := clientPrefix().ReplaceAllString(name, "")
	for !known(plain) && strings.HasPrefix(plain, "rye_rye_") {
		plain = strings.TrimPrefix(plain, "rye_")
	}
	if known(plain) {
		return plain
	}
	return name
}

// unknownTool tells of a name that begins as those of our tools do, and is none.
func (d *directive) unknownTool(l *list, c call, tools map[string]string) {
	name := clientPrefix().ReplaceAllString(c.name, "")
	if !strings.HasPrefix(name, "rye_") {
		return
	}
	names := slices.Concat(slices.Sorted(maps.Keys(primaries)), slices.Sorted(maps.Keys(tools)))
	near := older[name]
	if near == "" {
		near = item.Nearest(name, names)
	}
	l.warnf(CodeCallName, c.line, meant(near), "a call of the body: there is no tool %s", c.written)
}

// checkPrimary looks at a call of a primary action.
func (d *directive) checkPrimary(l *list, c call) {
	var kind item.Kind
	id, child := "", ""
	for _, m := range callArgument().FindAllStringSubmatch(c.arguments, -1) {
		switch value := m[2]; {
		case m[1] == "item_id" && id == "":
			id = value
		case m[1] == "item_type" && kind == "":
			kind, _ = item.ParseKind(value)
		case strings.HasPrefix(m[1], "directive") && child == "":
			child = value
		}
	}
	d.checkNamed(l, c, kind, id)
	if id == action.ThreadDirectiveID {
		d.checkNamed(l, c, item.Directive, child)
	}
}

// checkNamed looks at an item that a call names. An item that a call signs or reads later
// may be written before.
func (d *directive) checkNamed(l *list, c call, kind item.Kind, id string) {
	primary := primaries[c.name]
	if id == "" || id == "..." || strings.ContainsAny(id, "{}$*<>…") {
		return // it is made of other values, or a pattern
	}
	if err := d.exists(kind, id); err != nil {
		message, try := missing(err)
		if right := d.intended(kind, id); right != "" {
			try = "write " + right
		} else if primary == permission.Sign || d.writes(kind, id) {
			return
		}
		l.warnf(CodeStepItem, c.line, try, "a call of the body: %s", message)
		return
	}
	if kind == "" {
		found, err := d.Resolver.FindAny(id)
		if err != nil {
			return // there are several
		}
		kind = found.Kind
	}
	d.needs(l, c.line, primary, kind, id)
}

// needs tells of a capability that the directive has not.
func (d *directive) needs(l *list, line int, primary string, kind item.Kind, id string) {
	if required := d.lacks(primary, kind, id); required != "" {
		l.warnf(CodeStepCapability, line, grants(primary, kind, id), "a call of the body needs the capability %s", required)
	}
}

// looksLikePath reports whether somebody wrote the path of an item's file for its id.
func looksLikePath(id string) bool {
	return strings.HasPrefix(id, ".ai/") || slices.Contains([]string{".md", ".py", ".yaml", ".yml", ".sh", ".js", ".ts"}, path.Ext(id))
}

// intended is the id of an item that there is, where what was written is it with a
// prefix twice, or the path of its file.
func (d *directive) intended(kind item.Kind, id string) string {
	plain := strings.TrimPrefix(id, ".ai/")
	for _, k := range item.Kinds() {
		plain = strings.TrimPrefix(plain, k.Dir()+"/")
	}
	if looksLikePath(id) {
		plain = strings.TrimSuffix(plain, path.Ext(plain))
	}
	for range strings.Count(plain, "/") {
		if d.exists(kind, plain) == nil {
			break
		}
		begin, rest, _ := strings.Cut(plain, "/")
		if !strings.HasPrefix(rest, begin+"/") {
			return ""
		}
		plain = rest
	}
	if plain == id || d.exists(kind, plain) != nil {
		return ""
	}
	return plain
}

// writes reports whether the body speaks of the file of an item, as one does that
// has it written.
func (d *directive) writes(kind item.Kind, id string) bool {
	return slices.ContainsFunc(item.Kinds(), func(k item.Kind) bool {
		return (kind == "" || k == kind) && strings.Contains(d.doc.Body, fmt.Sprintf(".ai/%s/%s", k.Dir(), id))
	})
}

// flat are the names by which threads know the tools of all spaces, with their ids.
func (w *world) flat() map[string]string {
	ids := w.ids()[item.Tool]
	names := make(map[string]string, len(ids))
	for _, id := range ids {
		if id != action.DirectiveReturnID {
			names[palette.FlatName(id)] = id
		}
	}
	return names
}
