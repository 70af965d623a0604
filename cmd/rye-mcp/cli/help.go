package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
)

// Where the texts of the program lie: guides say how to do a thing, the reference says
// what holds.
const (
	guidesBelow    = "rye/guides/"
	referenceBelow = "rye/core/"
	oursBelow      = "rye/"
)

// maxHelpWidth is the widest that guides are shown: longer lines are hard to follow.
const maxHelpWidth = 110

// pipedWidth is how wide guides are where there is no terminal.
const pipedWidth = 80

func newHelpCommand(sys System, opts *options) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "Show help about a command, a guide, or any knowledge",
		Long: `Show help about a command, or a guide: "rye-mcp help" lists both. Any other knowledge
is shown by its id. Where a command and a guide have one name, the command wins, and
the guide is guides/NAME.

Guides are part of the program: nothing that a project brings takes their place. On a
terminal what is longer than the screen goes through $PAGER.`,
		Example: `  rye-mcp help first-directive
  rye-mcp help threads wait
  rye-mcp help rye/core/security`,
		ValidArgsFunction: completer{sys: sys, opts: opts}.help,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return overview(sys, *opts, cmd.Root())
			}
			about, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) == 0 && about != cmd.Root() {
				return commandHelp(sys, about)
			}
			if len(args) > 1 {
				return ourTexts().unknown(strings.Join(args, " "), cmd.Root())
			}
			return topic(cmd.Context(), cmd.Root(), sys, *opts, args[0])
		}),
	}
}

// overview shows what commands and guides there are.
func overview(sys System, opts options, root *cobra.Command) error {
	if err := root.Help(); err != nil {
		return err
	}
	texts := ourTexts()
	for _, part := range []struct{ title, below string }{
		{"Guides (rye-mcp help TOPIC):", guidesBelow}, {"Reference:", referenceBelow},
	} {
		var t table
		for _, id := range texts.below(part.below) {
			t.add(text(""), text(texts.topic(id, root)), text(texts[id].Description))
		}
		if _, err := fmt.Fprintf(sys.Stdout, "\n%s\n", part.title); err != nil {
			return err
		}
		if err := t.write(newDisplay(sys, opts)); err != nil {
			return err
		}
	}
	return nil
}

// commandHelp shows the help of a command, and names the texts of the same name.
func commandHelp(sys System, about *cobra.Command) error {
	if err := about.Help(); err != nil || about.Parent() != about.Root() {
		return err
	}
	texts := ourTexts()
	for _, below := range []string{guidesBelow, referenceBelow} {
		id := below + about.Name()
		if texts[id] == nil {
			continue
		}
		if _, err := fmt.Fprintf(sys.Stdout, "\n%s: rye-mcp help %s\n", texts[id].Title, strings.TrimPrefix(id, oursBelow)); err != nil {
			return err
		}
	}
	return nil
}

// library is the knowledge of the program, by id.
type library map[string]*item.KnowledgeDoc

func ourTexts() library {
	texts := library{}
	resolver := resolve.New(resolve.Roots{System: system.FS()})
	entries, err := resolver.All(item.Knowledge)
	if err != nil {
		return nil // never: it is part of the program
	}
	for _, e := range entries {
		if found, err := resolver.Find(item.Knowledge, e.ID); err == nil {
			if doc, err := found.Knowledge(); err == nil {
				texts[e.ID] = doc
			}
		}
	}
	return texts
}

// below are the ids below a path, sorted.
func (l library) below(path string) []string {
	ids := slices.Sorted(maps.Keys(l))
	return slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, path) })
}

// topic is the shortest name by which help opens a text: a command of that name comes first.
func (l library) topic(id string, root *cobra.Command) string {
	long := strings.TrimPrefix(id, oursBelow)
	name, isGuide := strings.CutPrefix(id, guidesBelow)
	if !isGuide {
		name = strings.TrimPrefix(id, referenceBelow)
	}
	if about, _, err := root.Find([]string{name}); err == nil && about != root || l.find(name) != l[id] {
		return long
	}
	return name
}

// find finds a text by a name.
func (l library) find(name string) *item.KnowledgeDoc {
	for _, below := range []string{guidesBelow, referenceBelow, oursBelow, ""} {
		if doc := l[below+name]; doc != nil {
			return doc
		}
	}
	return nil
}

// topic shows a guide, or another knowledge entry. The texts of the program come first: a
// project must not explain it in other words.
func topic(ctx context.Context, root *cobra.Command, sys System, opts options, name string) error {
	texts := ourTexts()
	doc := texts.find(name)
	if doc == nil {
		_, roots := completer{sys: sys, opts: &opts}.spaces()
		found, err := resolve.New(roots).Find(item.Knowledge, name)
		var missing *resolve.NotFoundError
		if errors.As(err, &missing) || errors.Is(err, item.ErrBadID) {
			return texts.unknown(name, root)
		}
		if err == nil {
			doc, err = found.Knowledge()
		}
		if err != nil {
			return err
		}
	}
	d := newDisplay(sys, opts)
	width := pipedWidth
	if d.width > 0 {
		width = min(d.width, maxHelpWidth)
	}
	body := strings.TrimSpace(doc.Body)
	if !strings.HasPrefix(body, "# ") {
		body = "# " + doc.Title + "\n\n" + body
	}
	return page(ctx, sys, strings.Join(markdown{d: d}.render(body, width), "\n")+"\n")
}

// unknown is the error about a name that is no topic; it names the one that is most like it.
func (l library) unknown(name string, root *cobra.Command) error {
	try, least := "rye-mcp help", max(2, len(name)/3)+1
	for _, id := range l.below(oursBelow) {
		topic := l.topic(id, root)
		if len(name) >= 3 && strings.HasPrefix(topic, strings.ToLower(name)) {
			try = "rye-mcp help " + topic
			break
		}
		if distance := item.EditDistance(strings.ToLower(name), topic, least); distance < least {
			try, least = "rye-mcp help "+topic, distance
		}
	}
	return &usageError{message: fmt.Sprintf("no command, guide or knowledge is called %q", name), try: try}
}
