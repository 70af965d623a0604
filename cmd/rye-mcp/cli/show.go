package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// statusJSON is what threads show writes with --json: the answer of get_status, what
// else is known of the named thread, and what came out in the end.
type statusJSON struct {
	view.Status
	aboutThread
	Result  string         `json:"result,omitempty"`
	Outputs map[string]any `json:"outputs,omitempty"`
}

// aboutThread is what a person may want to know of a thread beside how it stands.
type aboutThread struct {
	ContinuationOf thread.ID   `json:"continuation_of,omitempty"`
	LastUsed       time.Time   `json:"last_used"`
	Bytes          int64       `json:"bytes"` // of its records on disk
	Chain          []thread.ID `json:"chain,omitempty"`
	Forks          []thread.ID `json:"forks,omitempty"` // the newest
}

// maxForksShown bounds the forks that are named.
const maxForksShown = 50

func lookAbout(ctx context.Context, p *project, id thread.ID) (about aboutThread, err error) {
	rec, err := p.store.Get(ctx, id)
	if err != nil {
		return about, err
	}
	about = aboutThread{ContinuationOf: rec.ContinuationOf, LastUsed: rec.LastUsed}
	// A size that cannot be measured hides nothing else.
	about.Bytes, _ = p.control.Threads.Records.Of(id).Whole().Size()
	chain, err := p.control.Threads.Chain(ctx, id)
	if err != nil {
		return about, err
	}
	if len(chain) > 1 {
		for _, member := range chain {
			about.Chain = append(about.Chain, member.ThreadID)
		}
	}
	of, err := json.Marshal(map[string]thread.ID{thread.MetadataForkedFrom: id})
	if err != nil {
		return about, err
	}
	forks, _, err := p.store.List(ctx, store.Filter{Metadata: of, Limit: maxForksShown})
	for _, fork := range forks {
		about.Forks = append(about.Forks, fork.ThreadID)
	}
	return about, err
}

func showThread(ctx context.Context, sys System, opts options, p *project, id thread.ID, asJSON bool) error {
	status, err := operation.GetStatus.Run(ctx, p.control, atTerminal(sys), operation.ThreadInput{ThreadID: id})
	if err != nil {
		return err
	}
	results, err := operation.AggregateResults.Run(ctx, p.control, atTerminal(sys), operation.AggregateInput{ThreadIDs: []thread.ID{id}})
	if err != nil {
		return err
	}
	about, err := lookAbout(ctx, p, id)
	if err != nil {
		return err
	}
	result := results.Results[id]
	if asJSON {
		return writeJSON(sys.Stdout, statusJSON{status, about, result.Result, result.Outputs})
	}
	file := p.control.Threads.Transcript(cmp.Or(status.ResolvedThreadID, id)).Where()
	if err := writeStatus(newDisplay(sys, opts), status, about, results.Totals.TreeSpend, file); err != nil {
		return err
	}
	if result.Result == "" {
		return nil
	}
	_, err = fmt.Fprintf(sys.Stdout, "\n%s\n", plain.Lines(result.Result))
	return err
}

// asksItself reports whether one of the questions is the thread's own.
func asksItself(s view.Status) bool {
	id := cmp.Or(s.ResolvedThreadID, s.ThreadID)
	return slices.ContainsFunc(s.Waiting, func(w view.Waiting) bool { return w.ThreadID == id })
}

// writeRetry tells when a thread that has failed is tried again, or why it is not.
func writeRetry(words func(name, value string), s view.Status) {
	if s.Retry != nil {
		words("tried again", fmt.Sprintf("at %s, attempt %d of %d", s.Retry.At.UTC().Format(time.RFC3339), s.Retry.Attempt, s.Retry.Attempts))
	}
	if s.NotRetried != "" {
		words("not retried", s.NotRetried)
	}
}

// writeRun tells what runs where, and by which items.
func writeRun(row func(string, any), words func(name, value string), s view.Status) {
	if s.NoWorker != "" {
		words("waits", s.NoWorker)
	}
	if s.ItemsWait != "" {
		words("waits", s.ItemsWait+" (rye-mcp threads cancel "+string(s.ThreadID)+")")
	}
	row("directive", s.Directive)
	row("model", s.Model)
	if s.Worker != "" {
		row("worker", s.Worker)
	}
	if s.Snapshot != "" {
		row("items", "snapshot "+s.Snapshot)
	}
}

func writeStatus(d display, s view.Status, about aboutThread, treeSpend thread.Micros, transcript string) error {
	var t table
	row := func(name string, value any) { t.add(cell{name, dim}, text(fmt.Sprint(value))) }
	// Words wrap below each other; ids and paths are there to be copied.
	words := func(name, value string) {
		for _, line := range plain.Wrap(plain.Line(value), d.width-len("continued as")-columnGap) {
			t.add(cell{name, dim}, text(line))
			name = ""
		}
	}
	row("thread", s.ThreadID)
	if about.ContinuationOf != "" {
		row("continues", about.ContinuationOf)
	}
	if s.ResolvedThreadID != "" {
		row("continued as", s.ResolvedThreadID)
	}
	row("name", s.Name)
	t.add(cell{"status", dim}, cell{stateOf(s.Status, s.Queued, asksItself(s), s.Retry != nil), stateColor(s.Status)})
	if s.Error != "" {
		words("error", s.Error)
	}
	writeRetry(words, s)
	for _, warning := range s.Warnings {
		words("warning", warning)
	}
	writeRun(row, words, s)
	row("started", s.CreatedAt.Format(time.RFC3339))
	row("last used", about.LastUsed.Format(time.RFC3339))
	row("took", fmt.Sprintf("%.1f s", s.ElapsedSeconds))
	writeCosts(row, words, s, treeSpend)
	for _, w := range s.Waiting {
		words("waits", fmt.Sprintf("%s of %s; rye-mcp threads approve %s", w.Code, w.ThreadID, w.ThreadID))
	}
	if s.Unread > 0 {
		words("unread", counted(s.Unread, "message")+" to it")
	}
	if s.ParentID != "" {
		row("parent", s.ParentID)
	}
	for _, child := range s.Children {
		row("child", child)
	}
	for _, fork := range about.Forks {
		row("fork", fork)
	}
	if noted, err := metadataRows(s.Metadata); err == nil {
		for _, n := range noted {
			words("metadata", n[0]+" = "+n[1])
		}
	}
	row("on disk", sizeOf(about.Bytes))
	row("transcript", transcript)
	d.width = 0
	return t.write(d)
}

// writeCosts says what a thread has used, and what is left.
func writeCosts(row func(string, any), words func(name, value string), s view.Status, treeSpend thread.Micros) {
	row("turns", s.Cost.Turns)
	row("tokens", s.Cost.Tokens())
	if s.TokenCount > 0 {
		row("context", fmt.Sprintf("%d tokens at the last report", s.TokenCount))
	}
	words("spend", fmt.Sprintf("%s (with everything below it %s)", s.Cost.Spend, treeSpend))
	if c := s.ChainCost; c != nil {
		words("chain", fmt.Sprintf("%s, %s in all its threads; rye-mcp threads chain %s", counted(c.Turns, "turn"), c.Spend, s.ThreadID))
	}
	if b := s.Budget; b != nil {
		words("budget", budgetText(*b, s.Status.Terminal()))
	}
}

// budgetText says what a thread may still spend, and whether it may start
// children; of one that has ended, what was spent of its budget.
func budgetText(b view.Budget, ended bool) string {
	if ended {
		text := fmt.Sprintf("%s of %s spent", b.TreeSpend, b.Max)
		if b.Active > 0 {
			text += fmt.Sprintf("; %s below it still at work", counted(b.Active, "thread"))
		}
		return text
	}
	text := fmt.Sprintf("%s of %s left, %s held by children", b.Remaining, b.Max, b.Reserved)
	if b.CanSpawn {
		return text + "; it may start a child"
	}
	return text + "; it may start no child: " + b.WhyNot
}
