// Package artifact is the tool with which a thread's model reads what was too
// long for a result. It reaches the artifacts of its own thread and nothing
// else, so it needs no capability.
package artifact

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/tools/guard"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// ID is the tool's; it is no item, and only threads have it.
const ID = "rye/agent/threads/read_artifact"

const description = "Read what was left out of a long result of this thread, by the reference that the result gives. Text " +
	"comes by lines, or by characters where lines are long; JSON is indented first. pattern shows only the lines that " +
	"match. path picks a member of JSON; a text in it is then read as it is. Long parts come in pages: go on at next_offset."

// Values of input.Unit.
const (
	unitLines      = "lines"
	unitCharacters = "characters"
)

type input struct {
	Ref     string `json:"ref" jsonschema:"reference that the shortened result gives"`
	Path    string `json:"path,omitempty" jsonschema:"only this member of JSON, such as data.stdout or items[0].name"`
	Unit    string `json:"unit,omitempty" enum:"lines,characters" default:"lines" jsonschema:"what offset and limit count"`
	Offset  int    `json:"offset,omitempty" minimum:"1" default:"1" jsonschema:"where to begin, counted from 1"`
	Limit   int    `json:"limit,omitempty" minimum:"1" jsonschema:"most lines, characters or matches; left out, as many as fit a page"`
	Pattern string `json:"pattern,omitempty" jsonschema:"regular expression (RE2): only lines that match, each with its number; unit has no meaning then"`
}

type result struct {
	Ref        string `json:"ref"`
	Content    string `json:"content"`
	Lines      int    `json:"total_lines"`
	Characters int    `json:"total_characters"`
	NextOffset int    `json:"next_offset,omitempty"`
	Note       string `json:"note,omitempty"`
}

// New returns the tool. It reads [tool.Env.Artifacts].
func New() tool.Tool {
	return tool.New(tool.Definition{ID: ID, Description: description, ReadOnly: true, Paged: true}, read)
}

func read(_ context.Context, env tool.Env, in input) (any, error) {
	if env.Artifacts == nil {
		env.Artifacts = Folder("")
	}
	data, err := env.Artifacts.Load(in.Ref)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, tool.Faultf(tool.CodeUnsupported, "artifact %s is no text: %d bytes, %s", in.Ref, len(data), guard.MediaType(data)).
			With("bytes", len(data))
	}
	text, err := member(string(data), in.Path)
	if err != nil {
		return nil, err
	}
	r := &result{Ref: in.Ref, Lines: len(lines(text)), Characters: utf8.RuneCountInString(text)}
	switch {
	case in.Pattern != "":
		err = r.match(text, in)
	case in.Unit == unitCharacters:
		err = r.characters(text, in)
	default:
		err = r.lines(text, in)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func pastEnd(in input, total int, what string) error {
	return tool.Faultf(tool.CodeBadArguments, "offset %d is past the end: there are %d %s", in.Offset, total, what)
}

func (r *result) more(next, total int, what string) {
	if next <= total {
		r.NextOffset = next
		r.Note = fmt.Sprintf("%d more %s; go on with offset %d", total-next+1, what, next)
	}
}
