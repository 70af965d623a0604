package validate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/digest"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/prompt"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// world is what is around the items of a project.
type world struct {
	*Validator
	shared
	composer prompt.Composer // of items whatever their signatures
	ids      func() map[item.Kind][]string
	// flatNames are the names by which threads know the tools, with their ids.
	flatNames func() map[string]string
	choices   map[provider.Want]choice
	listed    map[string]bool // paths of the files that are validated
}

// shared are the settings that several checks need; those that cannot be used
// are empty.
type shared struct {
	hooks  hook.Set
	risk   []config.Risk
	limits item.LimitSet
	// preload is the room for the tools of a thread, in tokens.
	preload int
}

type choice struct {
	provider.Choice
	err error
}

func (v *Validator) look(s shared) *world {
	unchecked := &trust.Gate{Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Off}, nil }}
	of := *v // which knows no threads
	of.Resolver = digest.Promised(v.Resolver)
	w := &world{
		Validator: &of, shared: s,
		composer: prompt.Composer{Resolver: of.Resolver, Trust: unchecked},
		ids:      sync.OnceValue(v.allIDs),
		choices:  map[provider.Want]choice{},
		listed:   map[string]bool{},
	}
	w.flatNames = sync.OnceValue(w.flat)
	return w
}

// allIDs are the ids of all spaces. A space that cannot be listed has none.
func (v *Validator) allIDs() map[item.Kind][]string {
	ids := map[item.Kind][]string{}
	for _, kind := range item.Kinds() {
		entries, err := v.Resolver.All(kind)
		if err != nil {
			continue
		}
		for _, e := range entries {
			ids[kind] = append(ids[kind], e.ID)
		}
		slices.Sort(ids[kind])
		ids[kind] = slices.Compact(ids[kind])
	}
	return ids
}

// exists returns why there is no such item, of any kind when kind is empty.
func (w *world) exists(kind item.Kind, id string) error {
	if kind != "" {
		_, err := w.Resolver.Find(kind, id)
		return err
	}
	_, err := w.Resolver.FindAny(id)
	if errors.As(err, new(*resolve.AmbiguousError)) {
		return nil // there are several; which is meant is for whoever runs it to say
	}
	return err
}

// inherited tells that something an item needs will not be used as it is, where
// that is not told of the thing itself.
func (w *world) inherited(l *list, line int, found *resolve.Found) {
	if !w.listed[found.Path] && !item.NamesThread(found.ID) {
		w.signature(l, line, trust.SubjectOf(found))
	}
}

// choose is the model for what a directive wants. Directives want the same few,
// and to find a provider on this machine takes a moment.
func (w *world) choose(ctx context.Context, want provider.Want) (provider.Choice, error) {
	known, ok := w.choices[want]
	if !ok {
		known.Choice, known.err = w.Providers.Choose(ctx, want)
		w.choices[want] = known
	}
	return known.Choice, known.err
}

// dotted is an id as capabilities have it.
func dotted(id string) string { return strings.ReplaceAll(id, "/", ".") }
