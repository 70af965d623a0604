package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// searchFlags are the flags of items search.
type searchFlags struct {
	itemFlags
	action.SearchRequest
	filters []string
	threads bool
	sort    string
}

func newItemsSearchCommand(sys System, opts *options) *cobra.Command {
	var flags searchFlags
	cmd := &cobra.Command{
		Use:   "search QUERY...",
		Short: "Find items by their text",
		Long: `Find items by the words of their title, name, description, category and text, best
first; an exact id, then an exact name, comes before all others.

  a b, a AND b     both words          "a phrase"   words that follow each other
  a OR b           one of them         begin*       words that begin so
  a NOT b          a without b         *            everything
  (a OR b) c       grouped

Metadata is asked with --filter: category=x, tags=a (or tags=b; one of them),
author=!x (not), version=>=1.2, date_from=2026-01-31.`,
		Example: `  rye-mcp items search 'review NOT security' --type directive
  rye-mcp items search 'regis*' --scope 'tool.rye.core.*' --sort name
  rye-mcp items search jwt --filter tags=auth --field title --fuzzy 1 --json`,
		RunE: shows(func(cmd *cobra.Command, args []string) error {
			flags.Query = strings.Join(args, " ")
			return searchItems(cmd.Context(), sys, *opts, &flags)
		}),
	}
	f := cmd.Flags()
	flags.add(cmd, "only this space: project, user or system")
	f.StringVar(&flags.Scope, "scope", "", "item type and ids, for example tool.rye.core.*")
	f.IntVar(&flags.Limit, "limit", search.DefaultLimit, "most results")
	f.IntVar(&flags.Offset, "offset", 0, "results to leave out before")
	f.StringVar(&flags.sort, "sort", string(search.ByScore), "score, date (newest first) or name")
	completeFlag(cmd, "sort", func() []string { return texts(search.Sorts()) })
	f.StringSliceVar(&flags.Fields, "field", nil, "look in these `fields` only: title, name, description, category, body; title:words for words there")
	completeFlag(cmd, "field", search.Fields)
	f.StringArrayVar(&flags.filters, "filter", nil, "metadata that an item must have, `KEY=VALUE`")
	f.IntVar(&flags.Fuzzy, "fuzzy", 0, "letters that may be wrong in a word, up to 3")
	f.IntVar(&flags.Proximity, "near", 0, "words at most between those that must all occur")
	f.BoolVar(&flags.threads, "threads", false, "records of threads, too")
	return cmd
}

// request makes one of the flags.
func (f *searchFlags) request() (action.SearchRequest, error) {
	r := f.SearchRequest
	if err := f.check(); err != nil {
		return r, err
	}
	switch {
	case f.kind != "" && r.Scope != "":
		return r, &usageError{message: "--type and --scope are both given", try: "--scope " + f.kind + ".*"}
	case r.Query == "" && len(f.filters) == 0 && len(r.Fields) == 0:
		return r, &usageError{message: "no query is given", try: "rye-mcp items search '*', or rye-mcp items list"}
	case r.Limit < 1 || r.Offset < 0:
		return r, &usageError{message: "--limit is 1 or more, --offset 0 or more", try: "rye-mcp items search --help"}
	}
	r.Scope, r.Source, r.SortBy = cmp.Or(r.Scope, f.kind), f.space, search.Sort(f.sort)
	if f.threads {
		r.Include = action.IncludeThreads
	}
	filters := map[string][]string{}
	for _, given := range f.filters {
		key, value, ok := strings.Cut(given, "=")
		if !ok {
			return r, &usageError{message: fmt.Sprintf("--filter %s has no value", given), try: "--filter category=x"}
		}
		filters[key] = append(filters[key], value)
	}
	raw, err := json.Marshal(filters)
	r.Filters = tool.Object(raw)
	return r, err
}

func searchItems(ctx context.Context, sys System, opts options, flags *searchFlags) error {
	r, err := flags.request()
	if err != nil {
		return err
	}
	return withItems(ctx, sys, opts, func(a *itemActions) error {
		line := startProgress(sys, "looking")
		found, err := a.found(ctx, r, line)
		line.end()
		if err != nil {
			return err
		}
		return conclude(sys, flags.json, found, true, func() error { return writeFound(newDisplay(sys, opts), found) })
	})
}

// found searches when all is indexed, and puts the pages of answers together.
func (a *itemActions) found(ctx context.Context, r action.SearchRequest, line *progress) (*action.SearchResult, error) {
	var whole *action.SearchResult
	want := r.Limit
	for {
		page, err := a.Search(ctx, a.caller(), r)
		if err != nil {
			return nil, err
		}
		if page.Building > 0 {
			line.say("index: %s", strings.TrimSuffix(page.Index, "; search again for the rest"))
			continue
		}
		if whole == nil {
			whole = page
			whole.Limit = want
		} else {
			whole.Results = append(whole.Results, page.Results...)
		}
		whole.NextOffset = page.NextOffset
		if page.NextOffset == 0 || len(whole.Results) >= want {
			return whole, nil
		}
		r.Offset, r.Limit = page.NextOffset, want-len(whole.Results)
	}
}

func writeFound(d display, r *action.SearchResult) error {
	if len(r.Results) == 0 {
		_, err := fmt.Fprintln(d.out, strings.TrimSpace("nothing found. "+plain.Line(r.Hint)))
		return err
	}
	t := table{header: []string{"SCORE", "TYPE", "ID", "SPACE", "DESCRIPTION"}}
	for _, h := range r.Results {
		space := string(h.Source)
		if h.ShadowedBy != "" {
			space += ", hidden by " + string(h.ShadowedBy)
		}
		t.add(text(fmt.Sprintf("%.2f", h.Score)), text(string(h.Type)), text(h.ID), text(space), text(cmp.Or(h.Description, h.Preview)))
	}
	if err := t.write(d); err != nil {
		return err
	}
	var err error
	if r.NextOffset > 0 {
		_, err = fmt.Fprintf(d.out, "\n%d of %d; --offset %d shows the next\n", len(r.Results), r.Total, r.NextOffset)
	}
	if r.Index != "" && err == nil {
		_, err = fmt.Fprintf(d.out, "index: %s\n", r.Index)
	}
	return err
}
