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
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func newThreadsRenameCommand(sys System, opts *options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rename ID NAME",
		Short: "Give a thread another name",
		Long: `Give a thread another name, of at most 200 characters. All threads of its chain are
called so, also those that continue it later.`,
		Example:           `  rye-mcp threads rename latest "Review of the parser"`,
		Args:              usageArgs(cobra.ExactArgs(2)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.anyThread,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(args[1]) == "" {
				return &usageError{message: "the name is empty", try: `rye-mcp threads rename ` + args[0] + ` "NAME"`}
			}
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				done, err := operation.RenameThread.Run(ctx, p.control, callerOf(sys, p), operation.RenameInput{ThreadID: id, Name: args[1]})
				if err != nil {
					return err
				}
				return conclude(sys, asJSON, done, true, func() error {
					_, err := fmt.Fprintf(sys.Stdout, "%s is called %s\n", id, plain.Line(done.Name))
					return err
				})
			})
		}),
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func newThreadsMetaCommand(sys System, opts *options) *cobra.Command {
	var (
		unset  []string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "meta ID [KEY=VALUE]...",
		Short: "Show or change what is noted of a thread",
		Long: `Show or change the metadata of a thread: names with values of your own, by which
"rye-mcp threads list --meta" finds it. A value that is JSON other than a text
(3, true, ["a"], {"a":1}) is kept as that, everything else as text. All threads of
the chain have the same; 16 KiB is the most.`,
		Example: `  rye-mcp threads meta review-17 team=parser ticket=431
  rye-mcp threads meta review-17 --unset ticket
  rye-mcp threads list --meta team=parser`,
		Args:              usageArgs(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.anyThread,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			patch, err := metadataPatch(args[1:], unset)
			if err != nil {
				return err
			}
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				return noteOf(ctx, sys, *opts, p, id, patch, asJSON)
			})
		}),
	}
	cmd.Flags().StringArrayVar(&unset, "unset", nil, "remove what has this `name`; repeat for more")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// noteOf changes the metadata of a thread, if there is anything to change, and shows it.
func noteOf(ctx context.Context, sys System, opts options, p *project, id thread.ID, patch tool.Object, asJSON bool) error {
	var metadata tool.Object
	if len(patch) > 0 {
		done, err := operation.RenameThread.Run(ctx, p.control, callerOf(sys, p), operation.RenameInput{ThreadID: id, Metadata: patch})
		if err != nil {
			return err
		}
		metadata = done.Metadata
	} else {
		rec, err := p.store.Get(ctx, id)
		if err != nil {
			return err
		}
		metadata = tool.Object(rec.Metadata)
	}
	if asJSON {
		return writeJSON(sys.Stdout, metadata)
	}
	rows, err := metadataRows(metadata)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(sys.Stdout, "nothing is noted of %s\n", id)
		return err
	}
	var t table
	for _, row := range rows {
		t.add(cell{row[0], dim}, text(row[1]))
	}
	d := newDisplay(sys, opts)
	d.width = 0
	return t.write(d)
}

// metadataRows are names and values of metadata, in order: texts as they are, other
// values as JSON.
func metadataRows(metadata tool.Object) (rows [][2]string, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(metadata.Raw(), &members); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		shown := string(members[name])
		var said string
		if json.Unmarshal(members[name], &said) == nil {
			shown = said
		}
		rows = append(rows, [2]string{name, shown})
	}
	return rows, nil
}

// metadataPatch is what KEY=VALUE and --unset change; empty where there is neither.
func metadataPatch(pairs, unset []string) (tool.Object, error) {
	members := map[string]any{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, &usageError{message: fmt.Sprintf("%q is not KEY=VALUE", pair), try: "team=parser"}
		}
		if _, twice := members[name]; twice {
			return nil, &usageError{message: fmt.Sprintf("%s is given twice", name), try: "each name once"}
		}
		members[name] = metadataValue(value)
	}
	for _, name := range unset {
		if _, twice := members[name]; twice {
			return nil, &usageError{message: fmt.Sprintf("%s is set and removed", name), try: "one of them"}
		}
		members[name] = nil
	}
	if len(members) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(members)
	return tool.Object(raw), err
}

// metadataValue is a value of the command line: JSON other than texts and null as that.
func metadataValue(text string) any {
	var value any
	raw := []byte(text)
	if err := json.Unmarshal(raw, &value); err != nil {
		return text
	}
	switch value.(type) {
	case nil, string:
		return text
	}
	return json.RawMessage(raw)
}
