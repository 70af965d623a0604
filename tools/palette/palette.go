// Package palette decides which tools a thread's model is given natively, and
// under which names. What does not fit the palette can still be executed by id
// through rye_execute: the palette is a convenience, never the permission.
package palette

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
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
	KindPrimary Kind = "primary" // one of the primary actions; ID is its name
	KindTool    Kind = "tool"    // a tool, executed by ID
	KindReturn  Kind = "return"  // directive_return, handled by the thread itself
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
	// Tools are the candidates.
	Tools []tool.Definition
	// Capabilities are the thread's patterns. They decide the order, and which
	// primary actions are worth showing.
	Capabilities []string
	// Allow decides about a required capability, ancestors included. Nil denies
	// everything.
	Allow func(required string) bool
	// Outputs are the directive's declared outputs; with any, directive_return
	// is part of the palette.
	Outputs []item.Output
	// MaxTokens bounds names, descriptions and schemas of the tools together.
	// Primary actions and directive_return do not count. 0 means
	// DefaultMaxTokens; a negative number leaves no tools.
	MaxTokens int
}

// Palette is the outcome.
type Palette struct {
	Entries []Entry
	// Omitted are the ids of allowed tools for which the budget was too small.
	Omitted []string
}

// Build makes a palette: the primary actions the capabilities speak of,
// directive_return, then the allowed tools, those matched by a specific
// pattern before those matched by a broad one.
func Build(in Input) Palette {
	var p Palette
	names := make(map[string]bool)
	add := func(kind Kind, name string, d tool.Definition) {
		p.Entries = append(p.Entries, Entry{Name: unique(names, name, d.ID), ID: d.ID, Definition: d, Kind: kind})
	}
	for _, d := range in.Primaries {
		if holdsAction(in.Capabilities, strings.TrimPrefix(d.ID, "rye_")) {
			add(KindPrimary, d.ID, d)
		}
	}
	if len(in.Outputs) > 0 {
		add(KindReturn, ReturnName, returnDefinition(in.Outputs))
	}
	left := cmp.Or(in.MaxTokens, DefaultMaxTokens) * bytesPerToken
	for _, d := range allowed(in) {
		size := len(FlatName(d.ID)) + len(d.Description) + len(d.Schema)
		if size > left {
			p.Omitted = append(p.Omitted, d.ID)
			continue
		}
		left -= size
		add(KindTool, FlatName(d.ID), d)
	}
	return p
}

// Get finds an entry by the name a model used.
func (p Palette) Get(name string) (Entry, bool) {
	i := slices.IndexFunc(p.Entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return p.Entries[i], true
}

// Required is the capability needed to execute the tool with that id.
func Required(id string) string { return "rye.execute.tool." + strings.ReplaceAll(id, "/", ".") }

// reserved tools are never given as tools: directive_return has an entry of its
// own, and the internal ones are for the system's hooks.
func reserved(id string) bool {
	return id == ReturnID || strings.HasPrefix(id, "rye/agent/threads/internal/")
}

// allowed lists the allowed tools, most specific pattern first, then by id.
func allowed(in Input) []tool.Definition {
	if in.Allow == nil {
		return nil
	}
	patterns := bySpecificity(in.Capabilities)
	type ranked struct {
		def  tool.Definition
		rank int
	}
	var list []ranked
	for _, d := range in.Tools {
		required := Required(d.ID)
		if reserved(d.ID) || !in.Allow(required) {
			continue
		}
		rank := slices.IndexFunc(patterns, func(p pattern) bool { return p.matches(required) })
		if rank < 0 {
			rank = len(patterns) // allowed for a reason that is not ours to know
		}
		list = append(list, ranked{d, rank})
	}
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.def.ID, b.def.ID))
	})
	defs := make([]tool.Definition, len(list))
	for i, r := range list {
		defs[i] = r.def
	}
	return defs
}
