package file

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type editInput struct {
	Path    string       `json:"path"`
	Changes []editChange `json:"changes" jsonschema:"all are made, or none"`
}

type editChange struct {
	LineID      string `json:"line_id,omitempty"`
	StartLineID string `json:"start_line_id,omitempty" jsonschema:"of several lines, with end_line_id"`
	EndLineID   string `json:"end_line_id,omitempty"`
	NewContent  string `json:"new_content" jsonschema:"without numbers and ids; empty deletes"`
}

// byteOrderMark may stand before the first line of a UTF-8 file.
var byteOrderMark = []byte("\xef\xbb\xbf")

type editResult struct {
	Path       string       `json:"path"`
	TotalLines int          `json:"total_lines"`
	Changed    []editedPart `json:"changed"`
	Note       string       `json:"note,omitempty"`
}

// editedPart is what now stands where a change was made. Lines is 0 where
// lines were deleted.
type editedPart struct {
	StartLine int    `json:"start_line"`
	Lines     int    `json:"lines"`
	Content   string `json:"content,omitempty"`
}

func editTool(s *space) tool.Tool {
	return tool.New(tool.Definition{
		ID: "rye/file-system/edit_lines",
		Description: "Replace lines of a text file by the line ids that rye/file-system/read showed. To insert, replace a " +
			"line by itself and the new lines. The answer has the new ids; other lines keep theirs.",
	}, s.edit)
}

func (s *space) edit(ctx context.Context, env tool.Env, in editInput) (any, error) {
	p, err := s.open(env)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	rel, err := p.locate(in.Path)
	if err != nil {
		return nil, err
	}

	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	pl, err := p.find(rel, protect.Writing)
	if err != nil {
		return nil, err
	}
	defer pl.Close()
	if pl.info == nil {
		return nil, tool.Faultf(tool.CodeNotFound, "%q does not exist", filepath.ToSlash(rel)).
			With("path", filepath.ToSlash(rel)).WithHint("Make it with rye/file-system/write.")
	}
	if p.turn, err = s.guard.take(ctx, p.key(pl)); err != nil {
		return nil, err
	}
	defer p.turn.release()
	doc, err := p.load(pl)
	if err != nil {
		return nil, err
	}
	if err := p.mayEdit(pl, doc.data); err != nil {
		return nil, err
	}
	spans, err := doc.locate(p.maskedIDs(in.Changes))
	if err != nil {
		return nil, err
	}
	after, parts := doc.apply(spans)
	data := join(after)
	if err := p.checkContent(pl, doc.data, data); err != nil {
		return nil, err
	}
	if err := pl.unchanged(doc); err != nil {
		return nil, err
	}
	if err := pl.replace(data); err != nil {
		return nil, err
	}
	p.wrote(pl, doc.data, data, false)
	changed := p.shownAs(data, after)
	changed.rel, changed.ids = rel, lineIDs(changed.shown)
	return describe(changed, parts), nil
}

// maskedIDs are changes whose ids, of which errors name parts, hold no secrets.
func (p *project) maskedIDs(changes []editChange) []editChange {
	changes = slices.Clone(changes)
	for i := range changes {
		c := &changes[i]
		c.LineID, c.StartLineID, c.EndLineID = p.masked(c.LineID), p.masked(c.StartLineID), p.masked(c.EndLineID)
	}
	return changes
}

// unchanged looks once more, right before the file is replaced, whether
// another process has written to it.
func (pl *place) unchanged(doc *document) error {
	now, _, err := pl.content()
	if err != nil && tool.AsFault(err).Code == tool.CodeNotFound {
		return err
	}
	if err != nil || !bytes.Equal(now, doc.data) {
		return stale(doc.rel, "%q changed while it was being edited; nothing was written")
	}
	return nil
}

func stale(rel, format string, args ...any) *tool.Fault {
	path := filepath.ToSlash(rel)
	return tool.Faultf(tool.CodeStaleLine, format, append([]any{path}, args...)...).With("path", path).
		WithHint("Read the file again with rye/file-system/read and use the ids it shows now.")
}

// span is a change with its lines found: [from, to) by index.
type span struct {
	from, to int
	text     string
	change   int // index in the input
}

// locate finds the lines of every change, in file order.
func (d *document) locate(changes []editChange) ([]span, error) {
	if len(changes) == 0 {
		return nil, tool.Faultf(tool.CodeBadArguments, `"changes" is empty`)
	}
	index := make(map[string]int, len(d.ids))
	for i, id := range d.ids {
		if !d.hides(i) {
			index[id] = i
		}
	}
	var missing []string
	spans := make([]span, len(changes))
	for n, c := range changes {
		first, last, err := c.ends(n)
		if err != nil {
			return nil, err
		}
		from, okFrom := index[first]
		to, okTo := index[last]
		if !okFrom {
			missing = append(missing, first)
		}
		if !okTo && last != first {
			missing = append(missing, last)
		}
		spans[n] = span{from: from, to: to + 1, text: c.NewContent, change: n}
	}
	if len(missing) > 0 {
		return nil, stale(d.rel, "%q has no line with the id %s; nothing was written", strings.Join(missing, ", ")).
			With("stale_ids", missing)
	}
	return spans, checkSpans(spans)
}

// ends are the ids of the first and last line of a change.
func (c editChange) ends(n int) (first, last string, err error) {
	one := c.LineID != ""
	both := c.StartLineID != "" && c.EndLineID != ""
	none := c.StartLineID == "" && c.EndLineID == ""
	switch {
	case one && none:
		return trimID(c.LineID), trimID(c.LineID), nil
	case both && !one:
		return trimID(c.StartLineID), trimID(c.EndLineID), nil
	default:
		return "", "", tool.Faultf(tool.CodeBadArguments,
			`changes[%d] needs "line_id", or "start_line_id" and "end_line_id"`, n)
	}
}

// trimID accepts an id with the line number it was shown with.
func trimID(id string) string {
	if _, after, ok := strings.Cut(id, ":"); ok {
		id = after
	}
	return strings.ToLower(strings.TrimSpace(strings.TrimSuffix(id, "|")))
}

// checkSpans sorts the spans and refuses reversed and overlapping ones.
func checkSpans(spans []span) error {
	for _, s := range spans {
		if s.to <= s.from {
			return tool.Faultf(tool.CodeBadArguments,
				"changes[%d] starts at line %d, after its end at line %d", s.change, s.from+1, s.to)
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(spans); i++ {
		if spans[i].from < spans[i-1].to {
			return tool.Faultf(tool.CodeBadArguments, "changes[%d] and changes[%d] both replace line %d",
				spans[i-1].change, spans[i].change, spans[i].from+1)
		}
	}
	return nil
}

// apply replaces the spans, and says which lines of the outcome are new. Line
// endings stay what they were at the place, and so do a missing final newline and a byte
// order mark, which nobody sees in the first line.
func (d *document) apply(spans []span) (after []line, parts []editedPart) {
	next := 0
	for _, s := range spans {
		after = append(after, d.lines[next:s.from]...)
		fresh := newLines(s.text, d.ending(s.from))
		parts = append(parts, editedPart{StartLine: len(after) + 1, Lines: len(fresh)})
		after = append(after, fresh...)
		next = s.to
	}
	after = append(after, d.lines[next:]...)
	if n := len(after); n > 0 && d.lines[len(d.lines)-1].end == "" {
		after[n-1].end = ""
	}
	if len(after) > 0 && bytes.HasPrefix(d.lines[0].text, byteOrderMark) && !bytes.HasPrefix(after[0].text, byteOrderMark) {
		after[0].text = slices.Concat(byteOrderMark, after[0].text)
	}
	return after, parts
}

// ending is the line ending in use around line i.
func (d *document) ending(i int) string {
	if end := d.lines[i].end; end != "" {
		return end
	}
	if end := d.lines[0].end; end != "" {
		return end
	}
	return "\n"
}

func newLines(text, end string) []line {
	if text == "" {
		return nil
	}
	var lines []line
	for t := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		lines = append(lines, line{text: []byte(strings.TrimSuffix(t, "\r")), end: end})
	}
	return lines
}

// describe shows the changed parts with their new ids, as many as fit.
func describe(doc *document, parts []editedPart) *editResult {
	r := &editResult{Path: filepath.ToSlash(doc.rel), TotalLines: len(doc.lines)}
	size := 0
	for _, part := range parts {
		from := part.StartLine - 1
		text, shown := render(doc, from, from+part.Lines, maxPageBytes)
		size += tool.JSONSize(text)
		if shown < part.Lines || size > maxResultBytes {
			r.Note = fmt.Sprintf("not all changed lines are shown; read %q for their ids", r.Path)
		}
		if size <= maxResultBytes {
			part.Content = text
		}
		r.Changed = append(r.Changed, part)
	}
	return r
}
