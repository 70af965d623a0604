package prompt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/foreign/claude"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// Most prompts that a list has. A person scrolls through it, and no client pages.
const Most = 50

// Bounds in bytes of what a menu shows.
const (
	maxTitle       = 100
	maxDescription = 300
)

// Library is what the directives of one project offer.
type Library struct {
	Actions *action.Actions
	// Paths lists files and folders of the project that tools may read and whose
	// path begins with prefix; folders end with a slash. At most so many.
	Paths func(ctx context.Context, prefix string, most int) ([]string, error)
	// Threads lists ids of threads that begin with prefix, newest first. At most so many.
	Threads func(ctx context.Context, prefix string, most int) ([]string, error)
}

// Prompt is a directive as a menu shows it.
type Prompt struct {
	ID          string // of the directive
	Name        string // see [Library.List]
	Title       string // may be empty
	Description string
	Arguments   []Argument
}

// Argument is an input of a directive. Its value is given as text.
type Argument struct {
	Name        string
	Description string
	Required    bool
}

// List are the directives that are offered: those of project, user and system, in
// that order and by id, at most [Most]. The name of one is its id with "-" for "/",
// or its id where another offered one has that name.
func (l *Library) List(ctx context.Context) ([]Prompt, error) {
	s, err := l.look()
	if err != nil {
		return nil, err
	}
	prompts := []Prompt{}
	for _, e := range s.entries {
		if len(prompts) == Most {
			break
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if doc := s.offered(e); doc != nil {
			prompts = append(prompts, Prompt{
				ID: e.ID, Name: s.name(e), Title: clip(doc.Title, maxTitle), Description: clip(doc.Description, maxDescription), Arguments: arguments(doc),
			})
		}
	}
	return prompts, nil
}

// shelf is the directives as they are during one call.
type shelf struct {
	*Library
	gate    *trust.Gate // reads settings and keys once
	entries []resolve.Entry
}

// look lists the directives that are found under their ids, those of other programs
// behind all others, of which there can be many.
func (l *Library) look() (*shelf, error) {
	all, err := l.Actions.Resolver.All(item.Directive)
	if err != nil {
		return nil, fmt.Errorf("list directives: %w", err)
	}
	s := &shelf{Library: l, gate: l.Actions.Trust.Once(l.Actions.Trust.Settings), entries: all[:0]}
	seen := make(map[string]bool, len(all))
	for _, e := range all {
		if !seen[e.ID] {
			seen[e.ID] = true
			s.entries = append(s.entries, e)
		}
	}
	slices.SortStableFunc(s.entries, func(a, b resolve.Entry) int { return min(len(a.Folder), 1) - min(len(b.Folder), 1) })
	return s, nil
}

// offered is the directive of an entry if it stands in menus, otherwise nil. It has
// a text and a description, its signature counts, and its inputs can be given as
// arguments.
func (s *shelf) offered(e resolve.Entry) *item.DirectiveDoc {
	if e.Space == item.System && internal(e.ID) {
		return nil
	}
	if form, _ := claude.FormOf(e.ID); e.Folder != "" && form != claude.Command { // agents and skills are for models to choose
		return nil
	}
	found, err := s.Actions.Resolver.In(e.Space).Find(e.Kind, e.ID)
	if err != nil {
		return nil
	}
	if v, err := s.gate.Verify(trust.SubjectOf(found)); err != nil || !v.Status.Good() {
		return nil
	}
	doc, err := found.Directive()
	if err != nil || doc.Description == "" || strings.TrimSpace(doc.Body) == "" || neededSecret(doc) != "" {
		return nil
	}
	return doc
}

// internal tells whether a directive of the system space is a part of something and
// no task that a person would pick.
func internal(id string) bool {
	return slices.ContainsFunc([]string{"rye/agent/", "rye/core/", "rye/demo/"}, func(folder string) bool { return strings.HasPrefix(id, folder) })
}

// neededSecret is an input that must be given and whose value no model is shown: it
// is for the tools of a thread.
func neededSecret(doc *item.DirectiveDoc) string {
	for _, in := range doc.Inputs {
		if in.Secret && in.Required {
			return in.Name
		}
	}
	return ""
}

func arguments(doc *item.DirectiveDoc) []Argument {
	var list []Argument
	for _, in := range doc.Inputs {
		if !in.Secret {
			list = append(list, Argument{Name: in.Name, Description: describe(in), Required: in.Required && in.Default == nil})
		}
	}
	return list
}

// describe tells a person what to give.
func describe(in item.Input) string {
	var notes []string
	switch {
	case len(in.Enum) > 0:
		notes = append(notes, "one of "+strings.Join(in.Enum, ", "))
	case in.Type == item.TypeArray || in.Type == item.TypeObject:
		notes = append(notes, in.Type+" as JSON")
	case in.Type != item.TypeString && in.Type != "":
		notes = append(notes, in.Type)
	}
	if in.Default != nil {
		notes = append(notes, "default "+item.Text(in.Default))
	}
	text := in.Description
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, "; ") + ")"
	}
	return clip(text, maxDescription)
}

// clip is a text as one line of at most n bytes and a mark.
func clip(text string, n int) string {
	return item.Clip(strings.Join(strings.Fields(text), " "), n)
}
