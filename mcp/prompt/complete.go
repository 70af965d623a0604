package prompt

import (
	"context"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// MaxValues is how many values a completion has at most, as the protocol has it.
const MaxValues = 100

// maxTyped is how long a text may be that is completed, in bytes: no path and no id
// is longer.
const maxTyped = 4096

// Values are what an argument may be.
type Values struct {
	Values []string
	// More is true when there are others.
	More bool
}

// Complete is what an argument may be that begins with what was typed: values of an
// enum without regard to case, files of the project, ids of items and threads. There
// is nothing to say of an argument that may be anything, and of prompts and arguments
// that do not exist: somebody is typing.
func (l *Library) Complete(ctx context.Context, name, argument, typed string) (Values, error) {
	if len(typed) > maxTyped {
		return Values{}, errorf("the text to complete has %d bytes; at most %d are completed", len(typed), maxTyped).try("its beginning")
	}
	s, err := l.look()
	if err != nil {
		return Values{}, err
	}
	e, err := s.find(name)
	if err != nil {
		return Values{}, nil //nolint:nilerr // see above
	}
	found, err := l.Actions.Resolver.Find(e.Kind, e.ID)
	if err != nil {
		return Values{}, nil //nolint:nilerr // prompts/get says why
	}
	if _, err := s.gate.Check(trust.SubjectOf(found)); err != nil {
		return Values{}, nil //nolint:nilerr // prompts/get says why
	}
	doc, err := found.Directive()
	if err != nil {
		return Values{}, nil //nolint:nilerr // prompts/get says why
	}
	in, declared := input(doc, argument)
	if !declared || in.Secret {
		return Values{}, nil
	}
	return s.complete(ctx, in, typed)
}

func (s *shelf) complete(ctx context.Context, in item.Input, typed string) (Values, error) {
	var list []string
	var err error
	switch {
	case len(in.Enum) > 0:
		list = beginning(in.Enum, typed)
	case in.Type == item.TypeBoolean:
		list = beginning([]string{"true", "false"}, typed)
	case in.Type != item.TypeString && in.Type != item.TypeArray:
	case means(in.Name, "path", "paths", "file", "files", "folder", "folders", "dir", "dirs", "directory", "directories"):
		list, err = s.Paths(ctx, typed, MaxValues+1)
	case means(in.Name, "thread"):
		list, err = s.Threads(ctx, typed, MaxValues+1)
	case means(in.Name, "item"):
		list, err = s.Items(ctx, "", typed, MaxValues+1)
	default:
		for _, kind := range item.Kinds() {
			if means(in.Name, string(kind)) {
				list, err = s.Items(ctx, kind, typed, MaxValues+1)
			}
		}
	}
	return Values{Values: list[:min(len(list), MaxValues)], More: len(list) > MaxValues}, err
}

// beginning are the values that begin with a text, without regard to case.
func beginning(values []string, typed string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool {
		return len(v) < len(typed) || !strings.EqualFold(v[:len(typed)], typed)
	})
}

// means tells whether the name of an input says that it is one of these things: path,
// report_path, thread_id.
func means(name string, things ...string) bool {
	name = strings.ToLower(name)
	last := name[strings.LastIndexAny(strings.TrimSuffix(strings.TrimSuffix(name, "_id"), "-id"), "_-.")+1:]
	last = strings.TrimSuffix(strings.TrimSuffix(last, "_id"), "-id")
	return slices.Contains(things, last)
}

// Items lists ids of items of a kind, or of all, that begin with a text: of every
// space, each once and in order, at most so many. Knowledge about threads is left out.
func (l *Library) Items(ctx context.Context, kind item.Kind, prefix string, most int) ([]string, error) {
	kinds := []item.Kind{kind}
	if kind == "" {
		kinds = item.Kinds()
	}
	var ids []string
	for _, k := range kinds {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		entries, err := l.Actions.Resolver.Items(k)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if strings.HasPrefix(e.ID, prefix) {
				ids = append(ids, e.ID)
			}
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids[:min(len(ids), most)], nil
}
