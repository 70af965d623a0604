package handoff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/guard"
)

// Manifest is what a successor is told about the work it continues, as the
// runtime knows it. The same manifest always gives the same text.
type Manifest struct {
	Thread    thread.ID // whose work is continued
	Via       thread.Via
	Position  int    // of the successor in its chain; that of the second thread is 2
	Directive string // item id
	Task      string // the directive as its model was told it
	// Inputs are those that may be shown: a placeholder stands for what is secret.
	Inputs    map[string]any
	Outputs   map[string]any // what the thread had returned; one that hands over has not
	Children  []Child        // of the whole chain, in the order in which they were started
	Artifacts []Artifact     // of the whole chain
	Files     []string       // written through tools, of the whole chain
	Said      []Said         // to the threads of the whole chain while they worked
	left      left
}

// Child is a thread that was started on the way.
type Child struct {
	ThreadID  thread.ID
	Directive string
	Status    thread.State
	Result    string // what came out of it, or why nothing did; empty while it is at work
}

// Artifact is a long result that was kept.
type Artifact struct {
	Ref   string
	Bytes int64  // of its content
	Tool  string // whose result it is; empty when that is not known
}

// left is what of the conversation the successor is not given.
type left struct{ messages, turns int }

// at is the text in the given detail within so many bytes, cut where even that is
// too long.
func (m Manifest) at(d detail, most int64) string { return cutMiddle(m.render(d), int(max(0, most))) }

// detail bounds the parts of a manifest: entries of lists, and bytes of texts.
type detail struct {
	result, files, artifacts, value, ended, task, live, said int
}

// details are tried in turn until one fits. Results of children are shortened
// first, then the lists of files and artifacts, inputs and outputs, the children
// that have ended, and the task, what was said and the children at work last.
func details() []detail {
	d := detail{result: 1000, files: 200, artifacts: 100, value: 4000, ended: 200, task: 1 << 20, live: 1000, said: 4 << 10}
	all := []detail{d}
	for _, reduce := range []func(){
		func() { d.result = 200 },
		func() { d.files, d.artifacts = 50, 25 },
		func() { d.value = 500 },
		func() { d.result = 0 },
		func() { d.files, d.artifacts = 10, 5 },
		func() { d.ended = 20 },
		func() { d.value = 60 },
		func() { d.task, d.said = 16<<10, 1<<10 },
		func() { d.files, d.artifacts, d.ended = 0, 0, 0 },
		func() { d.task = 4 << 10 },
		func() { d.live = 50 },
		func() { d.task, d.value, d.said = 1<<10, 0, 200 },
		func() { d.task, d.live = 300, 5 },
		func() { d.task, d.live, d.said = 0, 0, 0 },
	} {
		reduce()
		all = append(all, d)
	}
	return all
}

// detailFor is the most detail that fits, or the least there is.
func (m Manifest) detailFor(most int64) detail {
	all := details()
	for _, d := range all {
		if int64(len(m.render(d))) <= most {
			return d
		}
	}
	return all[len(all)-1]
}

func (m Manifest) render(d detail) string {
	var b strings.Builder
	m.head(&b)
	if task := cutMiddle(strings.TrimSpace(m.Task), d.task); task != "" && d.task > 0 {
		fmt.Fprintf(&b, "\n## The task\n<task>\n%s\n</task>\n", guard.Inside("task", task))
	}
	if d.said > 0 {
		list(&b, "Said while you worked, to be followed; the last counts", m.Said, mostSaid, saidLine(d.said))
	}
	values(&b, "Inputs", m.Inputs, d.value)
	values(&b, "What it had returned", m.Outputs, d.value)
	live, ended := m.children()
	list(&b, "Child threads at work, which go on; wait for them by their ids", live, d.live, childLine(0))
	list(&b, "Child threads that have ended", ended, d.ended, childLine(d.result))
	list(&b, "Files written through tools", m.Files, d.files, strconv.Quote)
	list(&b, "Artifacts, which you can still read by their references", m.Artifacts, d.artifacts, artifactLine)
	m.leftOut(&b)
	return strings.ToValidUTF8(b.String(), "\ufffd")
}

// recordTitle begins every manifest, which models know as the record.
const recordTitle = "# Where the work stands\n\nYou continue the work of thread "

func (m Manifest) head(b *strings.Builder) {
	why, place := "whose context window was nearly full", fmt.Sprintf("thread %d of its chain", m.Position)
	switch m.Via {
	case thread.ViaHandoff:
	case thread.ViaResume:
		why = "which had ended"
	case thread.ViaRetry:
		why = "which had failed"
	case thread.ViaFork:
		why, place = "which goes its own way", "a copy of it"
	}
	fmt.Fprintf(b, recordTitle+"`%s`, %s. ", m.Thread, why)
	fmt.Fprintf(b, "You are %s, with the same directive, `%s`. ", place, m.Directive)
	b.WriteString("The runtime has put this record together; what it lists is done and need not be done again.\n")
}

// children are those at work and those that have ended.
func (m Manifest) children() (live, ended []Child) {
	for _, c := range m.Children {
		if c.Status.Terminal() {
			ended = append(ended, c)
		} else {
			live = append(live, c)
		}
	}
	return live, ended
}

// childLine says what came out of a child in so many bytes.
func childLine(most int) func(Child) string {
	return func(c Child) string {
		line := fmt.Sprintf("`%s` (`%s`): %s", c.ThreadID, c.Directive, c.Status)
		result := strings.Join(strings.Fields(c.Result), " ")
		if result == "" || most == 0 {
			return line
		}
		if short := item.Begin(result, most); short != result {
			result = short + "…"
		}
		return line + ": " + result
	}
}

// mostSaid is how many instructions are passed on.
const mostSaid = 20

// saidLine is an instruction in so many bytes.
func saidLine(most int) func(Said) string {
	return func(s Said) string {
		from := s.From.Name
		if s.From.Kind == thread.ByPerson {
			from = "the person"
		}
		return from + ": " + cutMiddle(strings.Join(strings.Fields(s.Text), " "), most)
	}
}

func artifactLine(a Artifact) string {
	line := fmt.Sprintf("`%s`: %d bytes", a.Ref, a.Bytes)
	if a.Tool != "" {
		line += ", of " + a.Tool
	}
	return line
}

// leftOut says what is not shown, and how to read it.
func (m Manifest) leftOut(b *strings.Builder) {
	if m.left.messages == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Left out\nOf thread `%s`, earlier messages that are not here: %d (turns: %d). ", m.Thread, m.left.messages, m.left.turns)
	b.WriteString("If you need one, and may use `rye/agent/threads/orchestrator`: its operation `chain_search` finds text in the whole " +
		"chain, `read_transcript` reads the thread. Both take that `thread_id`.\n")
}

// values writes named values, those that are too long shortened.
func values(b *strings.Builder, title string, named map[string]any, most int) {
	if len(named) == 0 || most == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n", title)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		fmt.Fprintf(b, "- %s: %s\n", name, cutMiddle(inJSON(named[name]), most))
	}
}

// list writes the newest entries, at most so many, and says how many there are
// before them.
func list[T any](b *strings.Builder, title string, entries []T, most int, line func(T) string) {
	if len(entries) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n", title)
	earlier := max(0, len(entries)-most)
	if earlier > 0 {
		fmt.Fprintf(b, "- %d that are not listed\n", earlier)
	}
	for _, e := range entries[earlier:] {
		fmt.Fprintf(b, "- %s\n", line(e))
	}
}

// inJSON is a value as a model writes it, without the escapes of HTML.
func inJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "[a value that cannot be shown]"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
