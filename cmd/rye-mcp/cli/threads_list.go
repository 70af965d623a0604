package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// maxListed is the longest page of a list.
const maxListed = 100

// listFlags select the threads of a list.
type listFlags struct {
	active    bool
	status    []string
	directive string
	parent    string
	text      string
	name      string
	meta      []string // KEY=VALUE
	older     string
	newer     string
	sort      string
	limit     int
	all       bool
	tree      bool
	json      bool
}

func newThreadsListCommand(sys System, opts *options) *cobra.Command {
	var flags listFlags
	complete := completer{sys: sys, opts: opts}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List threads, newest first",
		Long: `List threads, newest first, or in another order. How old a thread is counts from
when it was last used. Threads started for the items of a list (rye-mcp threads
map) stand under their set, which --parent shows.

With --tree what threads have started stands below them, a thread with those that it
continues is one line, and the line has the money of the whole tree: spent, reserved
by what works below, and left. Below the tree stands what waits for an answer. It is
what the page of rye-mcp ui shows, and --json gives all of it.`,
		Example: `  rye-mcp threads list --active
  rye-mcp threads list --tree
  rye-mcp threads list --older-than 30d --sort spend
  rye-mcp threads list --meta team=parser --sort "name desc"
  rye-mcp threads list --status error --text review --all`,
		Args: usageArgs(cobra.NoArgs),
		RunE: shows(func(cmd *cobra.Command, _ []string) error {
			if err := flags.check(cmd.Flags().Changed("limit")); err != nil {
				return err
			}
			if flags.tree {
				return showTree(cmd.Context(), sys, *opts, flags)
			}
			return listThreads(cmd.Context(), sys, *opts, flags)
		}),
	}
	cmd.Flags().BoolVar(&flags.active, "active", false, "only threads that have not ended")
	cmd.Flags().StringSliceVar(&flags.status, "status", nil, "only threads in these `states`: created, running, completed, error, cancelled, continued")
	cmd.Flags().StringVar(&flags.directive, "directive", "", "only threads of this directive")
	cmd.Flags().StringVar(&flags.parent, "parent", "", "only children of this thread")
	cmd.Flags().StringVar(&flags.text, "text", "", "only threads whose id, name or directive contains this")
	cmd.Flags().StringVar(&flags.name, "name", "", "only threads whose name contains this")
	cmd.Flags().StringArrayVar(&flags.meta, "meta", nil, "only threads with this metadata, as `key=value`; repeat for more")
	cmd.Flags().StringVar(&flags.older, "older-than", "", "only threads that were last used longer ago, such as 30d or 12h")
	cmd.Flags().StringVar(&flags.newer, "newer-than", "", "only threads that were used since, such as 30d or 12h")
	cmd.Flags().StringVar(&flags.sort, "sort", "", "order by "+strings.Join(view.SortNames(), ", ")+"; with \" asc\" or \" desc\" behind it")
	cmd.Flags().IntVar(&flags.limit, "limit", 50, "most threads to list")
	cmd.Flags().BoolVar(&flags.all, "all", false, "list all of them, however many there are")
	cmd.Flags().BoolVar(&flags.tree, "tree", false, "draw the tree of threads; with --parent, of that thread and what is below it")
	jsonFlag(cmd, &flags.json)
	completeFlag(cmd, "status", stateNames)
	completeFlag(cmd, "sort", view.SortNames)
	completeWith(cmd, "parent", complete.anyThread)
	completeWith(cmd, "directive", complete.directive)
	return cmd
}

func stateNames() []string {
	var names []string
	for _, s := range thread.States() {
		names = append(names, string(s))
	}
	return names
}

func (f listFlags) check(limited bool) error {
	switch {
	case f.limit < 1 || f.limit > maxListed:
		return &usageError{message: fmt.Sprintf("--limit %d is not between 1 and %d", f.limit, maxListed), try: "--limit 50"}
	case limited && f.all:
		return &usageError{message: "--limit and --all contradict each other", try: "one of them"}
	case f.active && len(f.status) > 0:
		return &usageError{message: "--active and --status contradict each other", try: "--status created,running"}
	}
	if err := f.checkTree(limited); err != nil {
		return err
	}
	if _, err := view.ParseSort(f.sort); err != nil {
		return &usageError{message: fmt.Sprintf("--sort %q is not known", f.sort), try: "--sort " + strings.Join(view.SortNames(), ", or ") + `, or "name desc"`}
	}
	for _, name := range f.status {
		if !slices.Contains(stateNames(), name) {
			return &usageError{message: fmt.Sprintf("--status %q is not known", name), try: "--status " + strings.Join(stateNames(), ",")}
		}
	}
	return nil
}

func listThreads(ctx context.Context, sys System, opts options, flags listFlags) error {
	list := view.List{Success: true, Threads: []view.Summary{}}
	none := "no threads match"
	err := inProject(ctx, sys, opts, func(ctx context.Context, p *project) error {
		in, err := flags.input(ctx, p)
		if err != nil {
			return err
		}
		if list, err = listPages(ctx, sys, p, in, flags.all); err != nil {
			return err
		}
		there, err := p.hasThreads(ctx, sys)
		if !there {
			none = "no threads in this project yet"
		}
		return err
	})
	if err != nil {
		return err
	}
	if flags.json {
		return writeJSON(sys.Stdout, list)
	}
	if list.Count == 0 {
		_, err = fmt.Fprintln(sys.Stdout, none)
	} else {
		err = writeList(newDisplay(sys, opts), list, flags.column(), sys.Now())
	}
	switch {
	case list.Partial:
		_, _ = fmt.Fprintf(sys.Stderr, "looked at %d threads, and there are more; --all looks at them\n", list.LookedAt)
	case list.NextCursor != "":
		_, _ = fmt.Fprintln(sys.Stderr, "there are more; --all lists them")
	}
	return err
}

func (f listFlags) input(ctx context.Context, p *project) (operation.ListInput, error) {
	in := operation.ListInput{
		Directive: f.directive, Query: f.text, Name: f.name, OlderThan: f.older, NewerThan: f.newer, Sort: f.sort, Limit: f.limit,
	}
	var err error
	if in.Metadata, err = metadataPatch(f.meta, nil); err != nil {
		return in, err
	}
	if f.active {
		in.Status = []thread.State{thread.Created, thread.Running}
	}
	for _, name := range f.status {
		in.Status = append(in.Status, thread.State(name))
	}
	if f.all {
		in.Limit = maxListed
	}
	if f.parent != "" {
		in.ParentID, err = completeID(ctx, p, f.parent)
	}
	return in, err
}

// listPages reads one page, or all of them as one.
func listPages(ctx context.Context, sys System, p *project, in operation.ListInput, all bool) (view.List, error) {
	list, err := operation.ListThreads.Run(ctx, p.control, atTerminal(sys), in)
	for err == nil && all && list.NextCursor != "" {
		var page view.List
		in.Cursor = list.NextCursor
		page, err = operation.ListThreads.Run(ctx, p.control, atTerminal(sys), in)
		list.Threads = append(list.Threads, page.Threads...)
		list.Count, list.NextCursor, list.Partial, list.LookedAt = len(list.Threads), page.NextCursor, page.Partial, page.LookedAt
	}
	return list, err
}

// column is the one that a list has because of its order or its bounds.
func (f listFlags) column() string {
	by, _, _ := strings.Cut(f.sort, " ")
	switch {
	case by == string(store.ByTokens):
		return "TOKENS"
	case by == string(store.ByLastUsed), f.older != "", f.newer != "":
		return "USED"
	}
	return ""
}

// writeList writes a row for each thread. The thread that it continues has a column
// where there is one, and so has what the list is ordered by.
func writeList(d display, list view.List, more string, now time.Time) error {
	chains := slices.ContainsFunc(list.Threads, func(s view.Summary) bool { return s.ContinuationOf != "" })
	t := table{header: []string{"THREAD", "STATUS", "TURNS", "SPEND", "AGE", "NAME"}}
	if more != "" {
		t.header = slices.Insert(t.header, 5, more)
	}
	if chains {
		t.header = append(t.header, "CONTINUES")
	}
	for _, s := range list.Threads {
		row := []cell{
			text(string(s.ThreadID)), {stateOf(s.Status, s.Queued, s.Asks, !s.RetryAt.IsZero()), stateColor(s.Status)}, text(strconv.Itoa(s.Cost.Turns)),
			text(s.Cost.Spend.String()), text(plain.Age(now.Sub(s.CreatedAt))), text(s.Name),
		}
		switch more {
		case "TOKENS":
			row = slices.Insert(row, 5, text(strconv.FormatInt(s.TokenCount, 10)))
		case "USED":
			row = slices.Insert(row, 5, text(plain.Age(now.Sub(s.LastUsed))))
		}
		if chains {
			row = append(row, text(string(s.ContinuationOf)))
		}
		t.add(row...)
	}
	// Ids are there to be copied, so other columns go first, and ids last of all.
	t.shortenTo("NAME", d.width)
	for _, name := range []string{"NAME", "TURNS", "AGE", "CONTINUES", "SPEND"} {
		if d.width > 0 && t.width() > d.width {
			t.drop(name)
		}
	}
	if t.width() > d.width {
		d.width = 0
	}
	return t.write(d)
}

// stateOf is the state of a thread for people, who are told of the queue that it
// may stand in, and of what it waits for.
func stateOf(s thread.State, queued, asks, retries bool) string {
	switch {
	case retries:
		return "retries"
	case queued:
		return "queued"
	case asks:
		return "asks"
	default:
		return string(s)
	}
}

func stateColor(s thread.State) color {
	switch s {
	case thread.Completed, thread.Continued:
		return green
	case thread.Error:
		return red
	case thread.Cancelled:
		return yellow
	case thread.Running:
		return cyan
	default:
		return dim
	}
}
