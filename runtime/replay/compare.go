package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
)

// Part is what differs.
type Part string

// The parts of a thread that are compared.
const (
	PartStart    Part = "start" // what the directive asks for: model, limits
	PartSystem   Part = "system prompt"
	PartMessages Part = "messages"
	PartTools    Part = "tools"
	PartCalls    Part = "tool calls"
	PartHooks    Part = "hooks"
	PartOutcome  Part = "outcome"
)

// Difference is one between the recording and today.
type Difference struct {
	Part Part   `json:"part"`
	Note string `json:"note,omitempty"` // a sentence
	Diff string `json:"diff,omitempty"` // unified
}

// Compare says how a run differs from what is expected of the thread.
func Compare(t *recording.Thread, now *Run) []Difference {
	want := t.Expected
	var found []Difference
	add := func(part Part, recorded, today string) {
		if d := unified(recorded, today); d != "" {
			found = append(found, Difference{Part: part, Diff: d})
		}
	}
	add(PartSystem, want.Request.System, now.Observed.Request.System)
	add(PartMessages, messagesText(want.Request.Messages), messagesText(now.Observed.Request.Messages))
	if want.Request.Tools != nil || !hasRequest(want) {
		found = append(found, compareTools(want.Request.Tools, now.Observed.Request.Tools)...)
	}
	add(PartCalls, callsText(want.Calls), callsText(now.Observed.Calls))
	add(PartHooks, hooksText(want.Hooks), hooksText(now.Observed.Hooks))
	return append(found, compareOutcome(t, now)...)
}

// hasRequest reports whether a first request is on record: of a version that did not
// record tools, only the rest of it.
func hasRequest(o recording.Observed) bool { return len(o.Request.Messages) > 0 }

// compareOutcome compares the ends, where the thread came to one by itself.
func compareOutcome(t *recording.Thread, now *Run) []Difference {
	var found []Difference
	outside := stoppedFromOutside(t)
	if now.Left > 0 {
		found = append(found, Difference{Part: PartOutcome, Note: fmt.Sprintf(
			"the thread ends earlier today: %d recorded answers of the model are left", now.Left)})
	}
	if now.Over != nil {
		if !outside {
			found = append(found, Difference{Part: PartOutcome, Note: fmt.Sprintf(
				"the thread does not end where it did: the model is asked for turn %d, and no answer to that is on record", now.Over.Turn)})
		}
		return found
	}
	if outside && now.Left == 0 { // it came as far as it had come then
		return found
	}
	if d := unified(outcomeText(t.Expected.Outcome), outcomeText(now.Observed.Outcome)); d != "" {
		found = append(found, Difference{Part: PartOutcome, Diff: d})
	}
	return found
}

// unified is a diff of two texts; empty when they are the same.
func unified(recorded, today string) string {
	if recorded == today {
		return ""
	}
	text := diff.Diff("recorded", withEnd(recorded), "today", withEnd(today))
	_, text, _ = bytes.Cut(text, []byte("\n")) // the line that says "diff"
	if len(text) == 0 {
		return "--- recorded\n+++ today\n(only the end of the last line differs)\n"
	}
	return string(text)
}

func withEnd(text string) []byte {
	if text == "" || strings.HasSuffix(text, "\n") {
		return []byte(text)
	}
	return []byte(text + "\n")
}

func messagesText(list []recording.Message) string {
	var b strings.Builder
	for _, m := range list {
		fmt.Fprintf(&b, "[%s]\n%s\n", m.Role, m.Text)
	}
	return b.String()
}

// compareTools names the tools that one request has and the other has not, and shows how
// the others differ. Another order is no difference.
func compareTools(recorded, today []llm.Tool) []Difference {
	was, gone := apart(recorded, today)
	is, added := apart(today, recorded)
	d := Difference{Part: PartTools, Diff: unified(toolsText(was), toolsText(is))}
	var notes []string
	if len(gone) > 0 {
		notes = append(notes, "not offered any more: "+strings.Join(gone, ", "))
	}
	if len(added) > 0 {
		notes = append(notes, "offered today: "+strings.Join(added, ", "))
	}
	if d.Note = strings.Join(notes, "; "); d.Note == "" && d.Diff == "" {
		return nil
	}
	return []Difference{d}
}

// apart are the tools that are also in another list, and the names of those that are not,
// by name.
func apart(tools, others []llm.Tool) (common []llm.Tool, alone []string) {
	sorted := slices.SortedStableFunc(slices.Values(tools), func(a, b llm.Tool) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range sorted {
		if slices.ContainsFunc(others, func(o llm.Tool) bool { return o.Name == t.Name }) {
			common = append(common, t)
		} else {
			alone = append(alone, t.Name)
		}
	}
	return common, alone
}

func toolsText(tools []llm.Tool) string {
	var b strings.Builder
	for _, t := range tools {
		fmt.Fprintf(&b, "%s\n  %s\n", t.Name, strings.ReplaceAll(t.Description, "\n", "\n  "))
		var schema bytes.Buffer
		if json.Indent(&schema, t.Schema, "  ", "  ") != nil {
			schema.Reset()
			schema.Write(t.Schema)
		}
		fmt.Fprintf(&b, "  %s\n", schema.String())
	}
	return b.String()
}

func callsText(calls []recording.Call) string {
	var b strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&b, "turn %d: %s %s: %s\n", c.Turn, c.Tool, strings.ReplaceAll(c.Input, "\n", " "), c.Result)
	}
	return b.String()
}

func hooksText(hooks []recording.Hook) string {
	var b strings.Builder
	for _, h := range hooks {
		fmt.Fprintf(&b, "%s: %s", h.Event, h.ID)
		if h.Error != "" {
			fmt.Fprintf(&b, ": failed: %s", h.Error)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func outcomeText(o recording.Outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", o.Status)
	if o.Error != "" {
		fmt.Fprintf(&b, "%s: %s\n", o.Code, o.Error)
	}
	if len(o.Outputs) > 0 {
		outputs, err := json.MarshalIndent(o.Outputs, "", "  ")
		if err == nil {
			fmt.Fprintf(&b, "%s\n", outputs)
		}
		return b.String() // which the result repeats
	}
	if o.Result != "" {
		fmt.Fprintf(&b, "%s\n", o.Result)
	}
	return b.String()
}
