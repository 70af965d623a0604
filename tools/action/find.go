package action

import (
	"errors"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// find resolves an item that c may use for action. An item that c may not use is
// refused before it is looked for, so that a refusal tells nothing about it.
func (a *Actions) find(c Caller, action, itemType, id string) (*resolve.Found, error) {
	return a.findIn(a.in(c, ""), c, action, itemType, id)
}

// in is the resolver of a caller for a space that a request names, or for all.
func (a *Actions) in(c Caller, source string) *resolve.Resolver {
	return inSource(a.Resolver.For(c.Env.ThreadID), source)
}

func inSource(spaces *resolve.Resolver, source string) *resolve.Resolver {
	if source == "" {
		return spaces
	}
	return spaces.In(item.Space(source))
}

func (a *Actions) findIn(spaces *resolve.Resolver, c Caller, action, itemType, id string) (*resolve.Found, error) {
	kind, err := permitBefore(c, action, itemType, id)
	if err != nil {
		return nil, err
	}
	if kind != "" {
		found, err := spaces.Find(kind, id)
		return found, discreet(c, err)
	}
	found, err := spaces.FindAny(id)
	if err != nil {
		return nil, discreet(c, err)
	}
	return found, permit(c, capabilitiesFor(action, found.Kind, id)...)
}

// permitBefore refuses an item before it is looked for. Kind is empty for a bare id: when it
// is known it has to be permitted, too.
func permitBefore(c Caller, action, itemType, id string) (kind item.Kind, err error) {
	if err := item.CheckID(id); err != nil {
		return "", err
	}
	if itemType == "" {
		return "", permitSomeKind(c, action, id)
	}
	if kind, err = item.ParseKind(itemType); err != nil {
		return "", badArgument("item_type", err)
	}
	return kind, permit(c, capabilitiesFor(action, kind, id)...)
}

// permitSomeKind is for bare ids: one of the kinds must be permitted.
func permitSomeKind(c Caller, action, id string) error {
	var all []string
	for _, kind := range item.Kinds() {
		all = append(all, capabilitiesFor(action, kind, id)...)
	}
	return permit(c, all...)
}

// discreet leaves out the ids near a missing one, and items of other kinds, where c may not
// search for them.
func discreet(c Caller, err error) error {
	missing, ok := errors.AsType[*resolve.NotFoundError](err)
	if !ok {
		return err
	}
	kinds := []item.Kind{missing.Kind}
	if missing.Kind == "" {
		kinds = item.Kinds()
	}
	hidden := func(kind item.Kind) bool { return permit(c, "rye.search."+string(kind)) != nil }
	told := *missing
	told.Others = slices.DeleteFunc(slices.Clone(missing.Others), hidden)
	if slices.ContainsFunc(kinds, hidden) {
		told.Nearest, told.Others = nil, nil
	}
	return &told
}

// noFile refuses to copy or sign what a thread has left, which is made when it is asked for.
func noFile(found *resolve.Found) error {
	return tool.Faultf(tool.CodeUnsupported, "%s is no file: it is made of what a thread has left whenever it is asked for", found.ID).
		WithHint("Fetch it, and write what is to stay into a knowledge item of your own.")
}
