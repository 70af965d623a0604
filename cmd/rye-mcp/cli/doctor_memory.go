package cli

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/rag/embed"
	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// memory says how memory stands. Nothing is asked while it is off, and nothing that costs
// anything.
func (d *doctor) memory(ctx context.Context) []finding {
	set, warnings, err := d.config.Memory()
	if err != nil {
		return []finding{failf("mend the file, then rye-mcp config show memory", "%v", err)}
	}
	var found []finding
	for _, w := range warnings {
		found = append(found, warnf("rye-mcp config show memory", "%s", w))
	}
	if !set.Enabled {
		return append(found, okf("off"))
	}
	found = append(found, d.memoryAside(set.Store)...)
	at := embed.NewSource(embed.Deps{Providers: d.providers.Source, Now: d.sys.Now}).Reach(ctx, set.Embedding)
	switch {
	case at.Why != "" && set.Embedding.BaseURL == "":
		found = append(found, okf("on, searched by words alone: %s", at.Why))
	case at.Why != "" && at.Says != "":
		found = append(found, warnf(at.Try, "on, searched by words alone: %s (%s)", at.Why, at.Says))
	case at.Why != "":
		found = append(found, warnf(at.Try, "on, searched by words alone: %s", at.Why))
	case at.Unpriced:
		found = append(found, warnf("embedding.price in agent/memory.yaml, in dollars per million tokens; 0 where it costs nothing",
			"on, %s at %s; its price is not known, so threads search by words alone", at.Model, at.Host))
	default:
		found = append(found, okf("on, %s at %s", at.Model, at.Host))
	}
	return found
}

// memoryAside names indexes of memory that were damaged: the entries that could be read
// are in the one that is used, and the rest is lost.
func (d *doctor) memoryAside(store string) []finding {
	below, inState := strings.CutPrefix(store, config.MemoryInState)
	state, err := d.state()
	if !inState || err != nil || state.Seal == nil {
		return nil // one that the person has named is theirs to look after
	}
	index := filepath.Join(filepath.Dir(state.Dir), filepath.FromSlash(below))
	return keptAside(filepath.Dir(index), "rye-mcp memory import FILE, if you have an export, then rm %q")
}
