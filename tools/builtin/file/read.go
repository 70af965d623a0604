package file

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type readInput struct {
	Path   string `json:"path" jsonschema:"file to read, relative to the project"`
	Offset int    `json:"offset,omitempty" default:"1" minimum:"1" jsonschema:"first line, counted from 1"`
	Limit  int    `json:"limit,omitempty" default:"2000" minimum:"1" jsonschema:"most lines to return"`
}

type readResult struct {
	Path       string `json:"path"`
	Content    string `json:"content"`
	TotalLines int    `json:"total_lines"`
	Remaining  int    `json:"remaining_lines,omitempty"`
	NextOffset int    `json:"next_offset,omitempty"`
	Note       string `json:"note,omitempty"`
}

func readTool() tool.Tool {
	return tool.New(tool.Definition{
		ID: "rye/file-system/read",
		Description: "Read a file of the project: text, or an image (PNG, JPEG, GIF, WebP), which is shown to you. Each line comes as <number>:<line id>|<text>; everything after " +
			"the first | is the line itself. Give line ids to rye/file-system/edit_lines. Long files come in parts: " +
			"go on at next_offset.",
		ReadOnly: true, Paged: true,
	}, read)
}

func read(_ context.Context, env tool.Env, in readInput) (any, error) {
	p, err := open(env)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	rel, err := p.locate(in.Path)
	if err != nil {
		return nil, err
	}
	data, info, err := p.content(rel)
	if err != nil {
		return nil, err
	}
	if isImage(data) {
		return readImage(rel, data)
	}
	doc, err := asText(rel, data, info)
	if err != nil {
		return nil, err
	}
	return page(doc, in.Offset, in.Limit)
}

// page shows the lines from offset (from 1) on, at most limit and as many as
// fit one result.
func page(doc *document, offset, limit int) (*readResult, error) {
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
	text, shown := render(doc, offset-1, last)
	r.Content = text
	if next := offset + shown; next <= len(doc.lines) {
		r.Remaining = len(doc.lines) - next + 1
		r.NextOffset = next
		r.Note = fmt.Sprintf("%d more lines; go on with offset %d", r.Remaining, next)
	}
	return r, nil
}

// render shows lines [from, to) up to the size of one result, and how many.
func render(doc *document, from, to int) (text string, shown int) {
	var b strings.Builder
	size := 0
	for i := from; i < to; i++ {
		l := show(i+1, doc.ids[i], doc.lines[i])
		size += tool.JSONSize(l) + 1
		if size > maxPageBytes && i > from {
			break
		}
		b.WriteString(l)
		b.WriteByte('\n')
		shown++
	}
	return b.String(), shown
}
