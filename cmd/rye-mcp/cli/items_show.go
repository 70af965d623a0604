package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

func newItemsShowCommand(sys System, opts *options) *cobra.Command {
	var flags itemFlags
	cmd := &cobra.Command{
		Use:   "show ITEM",
		Short: "Show an item: where it stands, whether its signature counts, and its text",
		Long: `Show an item by its id: which file it is and what it hides, whether its signature
counts, its metadata, and its text without the signature line.`,
		Example: `  rye-mcp items show review/security
  rye-mcp items show rye/core/errors --type knowledge --json`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.anyItem,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			return showItem(cmd.Context(), sys, *opts, args[0], flags)
		}),
	}
	flags.add(cmd, "of this space, not the first that has the id")
	return cmd
}

func showItem(ctx context.Context, sys System, opts options, id string, flags itemFlags) error {
	return withItems(ctx, sys, opts, func(a *itemActions) error {
		found, err := a.whole(ctx, action.FetchRequest{ItemType: flags.kind, ItemID: id, Source: flags.space})
		if err != nil {
			return err
		}
		return conclude(sys, flags.json, found, true, func() error { return writeItem(newDisplay(sys, opts), found) })
	})
}

// whole fetches an item with all of its text.
func (a *itemActions) whole(ctx context.Context, r action.FetchRequest) (*action.FetchResult, error) {
	const page = 1_000_000
	r.MaxBytes = page
	var whole *action.FetchResult
	var content strings.Builder
	for {
		answer, err := a.Fetch(ctx, a.caller(), r)
		if err != nil {
			return nil, err
		}
		found, ok := answer.(*action.FetchResult)
		if !ok {
			return nil, fmt.Errorf("bug: an item was fetched as %T", answer)
		}
		if whole == nil {
			whole = found
		}
		content.WriteString(found.Content)
		if found.NextOffset == 0 {
			whole.Content, whole.NextOffset = content.String(), 0
			return whole, nil
		}
		r.Offset = found.NextOffset
		r.Destination, r.Overwrite = "", false // it has been copied
	}
}

func writeItem(d display, r *action.FetchResult) error {
	var t table
	row := func(name, value string) {
		for _, line := range plain.Wrap(plain.Line(value), d.width-len("description")-columnGap) {
			t.add(cell{name, dim}, text(line))
			name = ""
		}
	}
	t.add(cell{string(r.ItemType), dim}, text(r.ItemID))
	t.add(cell{"space", dim}, text(string(r.Space)))
	t.add(cell{"path", dim}, text(r.Path))
	row("signature", signatureText(r.Signature))
	for _, s := range r.Shadows {
		row("hides", fmt.Sprintf("that of the %s space", s.Space))
	}
	for _, warning := range r.Warnings {
		row("warning", warning)
	}
	for _, key := range shownMetadata(r) {
		row(key, valueText(r.Metadata[key]))
	}
	d.width = 0 // paths are there to be copied
	if err := t.write(d); err != nil {
		return err
	}
	_, err := fmt.Fprintf(d.out, "\n%s\n", strings.TrimRight(plain.Lines(r.Content), "\n"))
	return err
}

// shownMetadata are the keys of what is said beside the text: of a directive all, of
// others what is short.
func shownMetadata(r *action.FetchResult) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.Metadata)), func(key string) bool {
		const long = 200
		text := valueText(r.Metadata[key])
		return text == "" || r.ItemType != item.Directive && len(text) > long || key == "content"
	})
}

func valueText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	raw, err := json.Marshal(value)
	if err != nil || slices.Contains([]string{"null", "[]", "{}"}, string(raw)) {
		return ""
	}
	return string(raw)
}

func signatureText(s action.Signature) string {
	text := string(s.State)
	if s.Owner != "" {
		text += ", " + s.Owner
	}
	if s.By != "" {
		text += ", key " + s.By
	}
	if s.SignedAt != "" {
		text += ", " + s.SignedAt
	}
	if s.Detail != "" {
		text += ": " + s.Detail
	}
	return text
}
