package file

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type readInput struct {
	Path   string `json:"path" jsonschema:"relative to the project"`
	Offset int    `json:"offset,omitempty" default:"1" minimum:"1" jsonschema:"first line"`
	Limit  int    `json:"limit,omitempty" default:"2000" minimum:"1"`
}

type readResult struct {
	Path       string `json:"path"`
	Content    string `json:"content"`
	TotalLines int    `json:"total_lines"`
	Remaining  int    `json:"remaining_lines,omitempty"`
	NextOffset int    `json:"next_offset,omitempty"`
	Note       string `json:"note,omitempty"`
}

func readTool(s *space) tool.Tool {
	return tool.New(tool.Definition{
		ID: "rye/file-system/read",
		Description: "Read a text file, or look at an image. Lines come as <number>:<line id>|<text>; " +
			"rye/file-system/edit_lines takes the ids. Long files come in parts: go on at next_offset.",
		ReadOnly: true, Paged: true,
	}, s.read)
}

func (s *space) read(_ context.Context, env tool.Env, in readInput) (any, error) {
	p, err := s.open(env)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	rel, err := p.locate(in.Path)
	if err != nil {
		return nil, err
	}
	pl, err := p.find(rel, protect.Reading)
	if err != nil {
		return nil, err
	}
	defer pl.Close()
	data, info, err := pl.content()
	if err != nil {
		s.guard.missed(env, p.key(pl))
		return nil, err
	}
	s.guard.saw(env, p.key(pl), data)
	if isImage(data) {
		return readImage(rel, data)
	}
	doc, err := p.asText(rel, data, info)
	if err != nil {
		return nil, err
	}
	return page(doc, in.Offset, in.Limit, env.Page(maxPageBytes))
}

// page shows the lines from offset (from 1) on, at most limit and as many as
// have room, in JSON.
func page(doc *document, offset, limit, room int) (*readResult, error) {
	r := &readResult{Path: filepath.ToSlash(doc.rel), TotalLines: len(doc.lines)}
	if len(doc.lines) == 0 {
		r.Note = "the file is empty"
		return r, nil
	}
	if offset > len(doc.lines) {
		return nil, tool.Faultf(tool.CodeBadArguments, "offset %d is past the end: %q has %d lines", offset, r.Path, len(doc.lines)).
			With("total_lines", len(doc.lines))
	}
	last := min(len(doc.lines), offset-1+min(limit, maxLines))
	text, shown := render(doc, offset-1, last, room)
	r.Content = text
	if next := offset + shown; next <= len(doc.lines) {
		r.Remaining = len(doc.lines) - next + 1
		r.NextOffset = next
		r.Note = fmt.Sprintf("%d more lines; go on with offset %d", r.Remaining, next)
	}
	if n := doc.hiddenIn(offset-1, offset-1+shown); n > 0 {
		r.Note = strings.TrimPrefix(r.Note+"; "+signatureNote, "; ")
	}
	return r, nil
}

// signatureNote says why a number is missing.
const signatureNote = "a line with a signature is not shown"

// hiddenIn is how many of the lines [from, to) are not shown.
func (d *document) hiddenIn(from, to int) (n int) {
	for i := from; i < to; i++ {
		if d.hides(i) {
			n++
		}
	}
	return n
}

// render shows lines [from, to), of which the first is shown whatever its length, and
// says how many of them it has dealt with.
func render(doc *document, from, to, room int) (text string, shown int) {
	var b strings.Builder
	size := 0
	for i := from; i < to; i++ {
		if doc.hides(i) {
			shown++
			continue
		}
		l := show(i+1, doc.ids[i], doc.shown[i])
		size += tool.JSONSize(l) + 1
		if size > room && i > from {
			break
		}
		b.WriteString(l)
		b.WriteByte('\n')
		shown++
	}
	return b.String(), shown
}
