// Package palette decides which tools a thread's model is given natively, and
// under which names. A tool that does not fit the palette can still be executed by id
// through rye_execute: the palette is a convenience, never the permission.
package palette

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// DefaultMaxTokens is the token budget when Input.MaxTokens is 0.
const DefaultMaxTokens = 2000

// bytesPerToken estimates tokens of JSON and English text; four is the usual
// rule of thumb and errs on the safe side for schemas.
const bytesPerToken = 4

// Kind tells how a call of an entry is handled.
type Kind string

// The kinds of entry.
const (
	KindPrimary  Kind = "primary"  // one of the primary actions; ID is its name
	KindTool     Kind = "tool"     // a tool, executed by ID
	KindReturn   Kind = "return"   // directive_return, handled by the thread itself
	KindArtifact Kind = "artifact" // read_artifact, which reads the thread's own artifacts
)

// Entry is one tool as the model sees it.
type Entry struct {
	Name       string // unique in the palette; letters, digits and "_", at most 64
	ID         string
	Definition tool.Definition
	Kind       Kind
}

// Input is what a palette is built from.
type Input struct {
	// Primaries are the primary actions by ID: rye_execute, rye_fetch,
	// rye_search, rye_sign.
	Primaries []tool.Definition
	// Tools are those that this binary has built in, Items those of the spaces. An
	// item takes the place of a built-in tool of the same id.
	Tools []tool.Definition
	Items []Item
	// Capabilities are the thread's patterns. They decide the order, and which
	// primary actions are worth showing.
	Capabilities []string
	// Idle are those of them that an ancestor leaves nothing of.
	Idle []string
	// Missing decides about a required capability, ancestors included: nil allows
	// it. Without the function everything is denied.
	Missing func(required string) *Denial
	// Outputs are the directive's declared outputs; with any, directive_return
	// is part of the palette.
	Outputs []item.Output
	// ReadArtifact is the tool that reads what was left out of a long result. It is
	// part of a palette that has other tools; its zero value is not offered.
	ReadArtifact tool.Definition
	// MaxTokens bounds names, descriptions and schemas of the tools together.
	// Primary actions, directive_return and read_artifact do not count: they have to be
	// short. 0 means DefaultMaxTokens; a negative number leaves no tools.
	MaxTokens int
	// MaxBroad bounds those among them that only a pattern for everything matches; 0:
	// MaxTokens alone does.
	MaxBroad int
}

// Denial says who lacks a capability.
type Denial struct {
	Ancestor int // 0: the thread itself; 1: its parent; 2: its grandparent; …
}

// Standing is what became of a tool that one of the thread's own patterns
// matches. At most one of Name, Denied, Problem and NoRoom says something.
type Standing struct {
	ID      string
	Pattern string // the most specific one that matches; empty: none, it is allowed otherwise
	Name    string // under which it is offered
	Denied  *Denial
	Problem string // why it cannot be offered
	NoRoom  bool   // the budget was too small
	ByID    bool   // it can be called through rye_execute all the same
}

// Palette is the outcome.
type Palette struct {
	Entries []Entry
	// Tools are all tools that the capabilities speak of, in the order in which
	// they were given room.
	Tools    []Standing
	unlisted []Entry // primary actions that are not offered and can be called
}

// Build makes a palette: the primary actions for what the capabilities speak of and
// has no entry of its own, directive_return, then the allowed tools, those matched
// by a specific pattern before those matched by a broad one, and read_artifact.
func Build(in Input) Palette {
	r := reach{
		directives: holdsKind(in.effective(), item.Directive),
		knowledge:  holdsKind(in.effective(), item.Knowledge),
	}
	var tools Palette
	tools.addTools(in, r)
	for _, s := range tools.Tools {
		if s.ByID {
			r.tools = append(r.tools, s.ID)
		}
	}
	p := Palette{Tools: tools.Tools}
	p.addPrimaries(in, r)
	if len(in.Outputs) > 0 {
		p.add(KindReturn, ReturnName, returnDefinition(in.Outputs))
	}
	p.Entries = append(p.Entries, tools.Entries...)
	p.addArtifact(in)
	return p
}

func (p *Palette) add(kind Kind, name string, d tool.Definition) {
	p.Entries = append(p.Entries, Entry{Name: name, ID: d.ID, Definition: d, Kind: kind})
}

// addTools offers the tools for which there is room.
func (p *Palette) addTools(in Input, r reach) {
	names := nameTools(in)
	left := cmp.Or(in.MaxTokens, DefaultMaxTokens) * bytesPerToken
	broadLeft := cmp.Or(in.MaxBroad*bytesPerToken, left)
	for _, c := range candidates(in) {
		s := Standing{ID: c.id, Pattern: c.pattern, Denied: c.denied}
		if s.Denied == nil {
			d, err := c.read()
			d = in.told(d)
			d.Schema = brief(d.Schema)
			size := len(names[c.id]) + len(d.Description) + len(d.Schema)
			switch {
			case errors.Is(err, chain.ErrNoTool), d.ForHooks, d.Off != nil && d.Off():
				continue // items that tools run on are nothing to call, nor are those that are off
			case err != nil:
				s.Problem, s.ByID = err.Error(), errors.As(err, new(*unnamedError))
			case r.directives && c.id == threadDirectiveID && (pattern{text: c.pattern}).wildcards() > 0:
				s.Problem = "rye_execute does the same"
			case size > left, c.unnamed() && size > broadLeft:
				s.NoRoom, s.ByID = true, true
			default:
				left -= size
				if c.unnamed() {
					broadLeft -= size
				}
				s.Name = names[c.id]
				p.add(KindTool, s.Name, d)
			}
		}
		p.Tools = append(p.Tools, s)
	}
}

// Get finds an entry by the name a model used. Texts of directives name rye_execute
// where the tools have entries of their own: then it is found too.
func (p Palette) Get(name string) (Entry, bool) {
	for _, entries := range [][]Entry{p.Entries, p.unlisted} {
		if i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name }); i >= 0 {
			return entries[i], true
		}
	}
	return Entry{}, false
}

// Only is the palette with nothing but the entries of a kind.
func (p Palette) Only(kind Kind) Palette {
	only := slices.DeleteFunc(slices.Clone(p.Entries), func(e Entry) bool { return e.Kind != kind })
	return Palette{Entries: only, Tools: p.Tools}
}

// Required is the capability needed to execute the tool with that id.
func Required(id string) string { return "rye.execute.tool." + strings.ReplaceAll(id, "/", ".") }

// reserved tools are never given as tools: directive_return has an entry of its
// own, and the internal ones are for the system's hooks.
func reserved(id string) bool {
	return id == ReturnID || strings.HasPrefix(id, "rye/agent/threads/internal/")
}

// candidate is a tool that the capabilities speak of.
type candidate struct {
	id, pattern string
	rank        int
	denied      *Denial
	read        func() (tool.Definition, error)
}

// unnamed reports whether the directive names neither the tool nor its family.
func (c candidate) unnamed() bool {
	fixed, _, wild := strings.Cut(strings.ReplaceAll(c.pattern, "?", "*"), "*")
	return wild && strings.HasPrefix(Required("rye/"), fixed)
}

// last reports whether others go before a tool that the same pattern matches: there
// is rye_execute, and its description is long.
func (c candidate) last() int {
	if strings.HasPrefix(c.id, "rye/agent/") {
		return 1
	}
	return 0
}

// candidates lists the tools that a pattern of the thread's own matches, or that
// are allowed to it otherwise: most specific pattern first, then by id.
func candidates(in Input) []candidate {
	if in.Missing == nil {
		return nil
	}
	patterns := bySpecificity(in.Capabilities)
	var list []candidate
	consider := func(id string, read func() (tool.Definition, error)) {
		if reserved(id) {
			return
		}
		required := Required(id)
		c := candidate{id: id, rank: len(patterns), denied: in.Missing(required), read: read}
		if i := slices.IndexFunc(patterns, func(p pattern) bool { return p.matches(required) }); i >= 0 {
			c.rank, c.pattern = i, patterns[i].text
		} else if c.denied != nil {
			return
		}
		list = append(list, c)
	}
	items := map[string]bool{}
	for _, i := range in.Items {
		items[i.ID] = true
		consider(i.ID, i.Read)
	}
	for _, d := range in.Tools {
		if !items[d.ID] {
			consider(d.ID, func() (tool.Definition, error) { return d, nil })
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.last(), b.last()), cmp.Compare(a.id, b.id))
	})
	return list
}
