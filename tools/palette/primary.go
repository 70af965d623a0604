package palette

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// threadDirectiveID is the older form of rye_execute on a directive.
const threadDirectiveID = "rye/agent/threads/thread_directive"

// reach is what a thread may execute that has no entry of its own.
type reach struct {
	directives, knowledge bool
	tools                 []string // ids
}

func (r reach) nothing() bool { return !r.directives && !r.knowledge && len(r.tools) == 0 }

// kinds are the kinds of item among it.
func (r reach) kinds() []string {
	var kinds []string
	if r.directives {
		kinds = append(kinds, string(item.Directive))
	}
	if len(r.tools) > 0 {
		kinds = append(kinds, string(item.Tool))
	}
	if r.knowledge {
		kinds = append(kinds, string(item.Knowledge))
	}
	return kinds
}

// addPrimaries offers the primary actions that a capability speaks of, rye_execute
// for what has no entry of its own. An action that is not offered can be called all the same:
// texts of directives name it.
func (p *Palette) addPrimaries(in Input, r reach) {
	for _, d := range in.Primaries {
		action := strings.TrimPrefix(d.ID, "rye_")
		offered := holdsAction(in.effective(), action) && (action != "execute" || !r.nothing())
		e := Entry{Name: d.ID, ID: d.ID, Definition: inThread(d, r), Kind: KindPrimary}
		if offered {
			p.Entries = append(p.Entries, e)
		} else if holdsAction(in.Capabilities, action) {
			p.unlisted = append(p.unlisted, e)
		}
	}
}

// effective are the patterns that an ancestor leaves something of.
func (in Input) effective() []string {
	return slices.DeleteFunc(slices.Clone(in.Capabilities), func(c string) bool { return slices.Contains(in.Idle, c) })
}

// holdsKind says whether a pattern may allow to execute an item of that kind.
func holdsKind(capabilities []string, kind item.Kind) bool {
	return slices.ContainsFunc(capabilities, func(c string) bool { return mayStartWith(c, "rye.execute."+string(kind)+".") })
}

// inThread is a primary action as the model of a thread is told of it: what it is
// there for, and the arguments that are needed most. All other arguments are taken
// too, and answers name those that lead on.
func inThread(d tool.Definition, r reach) tool.Definition {
	s := &tool.Schema{Type: item.TypeObject, Required: []string{"item_id"}}
	kinds := []string{string(item.Directive), string(item.Tool), string(item.Knowledge)}
	switch d.ID {
	case "rye_execute":
		d.Description, kinds = r.description(), r.kinds()
		s.Set("item_id", text(""))
		s.Set("item_type", &tool.Schema{Type: item.TypeString, Enum: kinds})
		s.Set("parameters", &tool.Schema{Type: item.TypeObject})
		if r.directives {
			s.Set("async", &tool.Schema{Type: item.TypeBoolean})
			s.Set("limits", &tool.Schema{Type: item.TypeObject, Description: "turns, tokens, spend, duration_seconds, spawns, depth"})
		}
	case "rye_fetch":
		d.Description = "Read an item by item_id, or search with query."
		s.Set("item_id", text(""))
		s.Set("item_type", &tool.Schema{Type: item.TypeString, Enum: kinds})
		s.Set("query", text(""))
		s.Set("scope", text("of query: directive, tool, knowledge or tool.rye.*"))
		s.Required = nil
	case "rye_search":
		d.Description = "Find items by words."
		s.Set("query", text(`words, "phrases", prefix*; * lists all`))
		s.Set("scope", text("directive, tool, knowledge or tool.rye.*"))
		s.Set("limit", &tool.Schema{Type: item.TypeInteger})
		s.Required = []string{"query"}
	case "rye_sign":
		d.Description = "Check and sign items of the project or user space."
		s.Set("item_id", text("an id, or a pattern with * and **"))
		s.Set("item_type", &tool.Schema{Type: item.TypeString, Enum: kinds})
	default:
		return d
	}
	d.Schema = s.JSON()
	return d
}

func text(description string) *tool.Schema {
	return &tool.Schema{Type: item.TypeString, Description: description}
}

// description says what rye_execute is there for in a thread.
func (r reach) description() string {
	var parts []string
	if r.directives {
		parts = append(parts, "Run a directive: a thread of its own does it, and its result comes back, with async its thread_id at once.")
	}
	if len(r.tools) > 0 {
		parts = append(parts, "Run one of the tools "+listed(r.tools)+".")
	}
	if r.knowledge {
		parts = append(parts, "Knowledge comes back as text.")
	}
	return strings.Join(parts, " ")
}

// maxListed bounds the ids in a description, in bytes.
const maxListed = 400

// listed joins ids, as many as there is room for.
func listed(ids []string) string {
	size, n := 0, 0
	for ; n < len(ids); n++ {
		if size += len(ids[n]) + len(", "); size > maxListed {
			break
		}
	}
	list := strings.Join(ids[:n], ", ")
	switch more := len(ids) - n; {
	case more == 0:
		return list
	case n == 0:
		return fmt.Sprintf("that have no entry here (%d)", more)
	default:
		return fmt.Sprintf("%s and %d more", list, more)
	}
}
