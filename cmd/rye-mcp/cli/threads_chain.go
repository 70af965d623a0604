package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// maxFound is the most that a search of a chain shows.
const maxFound = 500

type chainFlags struct {
	search string
	regex  bool
	max    int
	json   bool
}

func newThreadsChainCommand(sys System, opts *options) *cobra.Command {
	var flags chainFlags
	cmd := &cobra.Command{
		Use:   "chain ID",
		Short: "Show or search the threads that continue one another",
		Long: `Show the chain of a thread: all threads that did one piece of work one after the
other, because the context of one was full (handoff) or it was resumed. Any of
them can be named. With --search their transcripts are searched; upper and lower
case are the same there, but not for --regex.`,
		Example: `  rye-mcp threads chain review-17
  rye-mcp threads chain review-17 --search "time.?out" --regex`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completer{sys: sys, opts: opts}.anyThread,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			searching := cmd.Flags().Changed("search")
			if err := flags.check(searching, cmd.Flags().Changed("max")); err != nil {
				return err
			}
			return withThread(cmd.Context(), sys, *opts, args[0], func(ctx context.Context, p *project, id thread.ID) error {
				if searching {
					return searchChain(ctx, sys, *opts, p, id, flags)
				}
				return showChain(ctx, sys, *opts, p, id, flags.json)
			})
		}),
	}
	cmd.Flags().StringVar(&flags.search, "search", "", "show where the transcripts have this text")
	cmd.Flags().BoolVar(&flags.regex, "regex", false, "the text is a regular expression (RE2)")
	cmd.Flags().IntVar(&flags.max, "max", 50, "most places to show")
	jsonFlag(cmd, &flags.json)
	return cmd
}

func (f chainFlags) check(searching, limited bool) error {
	switch {
	case !searching && (f.regex || limited):
		return &usageError{message: "--regex and --max are about a search", try: "--search TEXT"}
	case searching && f.search == "":
		return &usageError{message: "--search has nothing to look for", try: "--search TEXT"}
	case f.max < 1 || f.max > maxFound:
		return &usageError{message: fmt.Sprintf("--max %d is not between 1 and %d", f.max, maxFound), try: "--max 50"}
	}
	return nil
}

func showChain(ctx context.Context, sys System, opts options, p *project, id thread.ID, asJSON bool) error {
	chain, err := operation.GetChain.Run(ctx, p.control, atTerminal(sys), operation.ThreadInput{ThreadID: id})
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(sys.Stdout, chain)
	}
	t := table{header: []string{"THREAD", "VIA", "STATUS", "TURNS", "SPEND", "STARTED"}}
	for _, link := range chain.Chain {
		t.add(text(string(link.ThreadID)), text(string(link.Via)), cell{string(link.Status), stateColor(link.Status)},
			text(strconv.Itoa(link.Cost.Turns)), text(link.Cost.Spend.String()), text(link.CreatedAt.Format(time.RFC3339)))
	}
	if err := t.write(newDisplay(sys, opts)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(sys.Stdout, "%s, %s, %s (with everything below them %s)\n", counted(chain.Length, "thread"),
		counted(chain.Cost.Turns, "turn"), chain.Cost.Spend, chain.TreeSpend); err != nil {
		return err
	}
	return writeTroubles(sys.Stdout, chain.Chain)
}

// writeTroubles says what went wrong in the threads of a chain.
func writeTroubles(to io.Writer, chain []view.ChainLink) error {
	for _, link := range chain {
		troubles := link.Warnings
		if link.Error != "" {
			troubles = append(slices.Clip(troubles), link.Error)
		}
		for _, trouble := range troubles {
			if _, err := fmt.Fprintf(to, "%s: %s\n", link.ThreadID, plain.Line(trouble)); err != nil {
				return err
			}
		}
	}
	return nil
}

func searchChain(ctx context.Context, sys System, opts options, p *project, id thread.ID, flags chainFlags) error {
	in := view.ChainSearchInput{ThreadID: id, Query: flags.search, SearchType: "text", Limit: flags.max}
	if flags.regex {
		in.SearchType = "regex"
	}
	found, err := operation.ChainSearch.Run(ctx, p.control, atTerminal(sys), in)
	if err != nil {
		return err
	}
	if flags.json {
		return writeJSON(sys.Stdout, found)
	}
	if found.Count == 0 {
		_, err := fmt.Fprintf(sys.Stdout, "nothing found in %s\n", counted(len(found.Searched), "thread"))
		return err
	}
	t := table{header: []string{"THREAD", "LINE", "EVENT", "EXCERPT"}}
	for _, m := range found.Matches {
		t.add(text(string(m.ThreadID)), text(strconv.Itoa(m.Line)), text(string(m.EventType)), text(m.Excerpt))
	}
	if err := t.write(newDisplay(sys, opts)); err != nil {
		return err
	}
	if found.Truncated {
		_, _ = fmt.Fprintln(sys.Stderr, "there may be more; --max shows more")
	}
	return nil
}
