package file

import (
	"context"
	"errors"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	maxMatches   = 200
	maxGrepBytes = 1 << 20 // larger files are seldom source text
)

type grepInput struct {
	Pattern string `json:"pattern" jsonschema:"RE2"`
	Path    string `json:"path,omitempty" default:"."`
	Include string `json:"include,omitempty" jsonschema:"such as *.go"`
	Ignored bool   `json:"include_ignored,omitempty" alias:"no_ignore"`
}

type grepResult struct {
	Matches       []grepMatch `json:"matches"`
	Count         int         `json:"count"`
	FilesSearched int         `json:"files_searched"`
	SkippedBinary int         `json:"skipped_binary,omitempty"`
	SkippedLarge  int         `json:"skipped_large,omitempty"`
	Unreadable    int         `json:"unreadable,omitempty"`
	Ignored       int         `json:"skipped_ignored,omitempty"` // files and folders
	Truncated     bool        `json:"truncated,omitempty"`
	Note          string      `json:"note,omitempty"`
}

type grepMatch struct {
	Path   string `json:"path"`
	Line   int    `json:"line"`
	LineID string `json:"line_id"`
	Text   string `json:"text"`
}

func grepTool(s *space) tool.Tool {
	return tool.New(tool.Definition{
		ID: "rye/file-system/grep",
		Description: "Search the text files of the project, at most 200 lines, with line ids (for edit_lines). Skips files over 1 MiB and what " +
			".gitignore names.",
		ReadOnly: true,
	}, s.grep)
}

func (s *space) grep(ctx context.Context, env tool.Env, in grepInput) (any, error) {
	p, err := s.open(env)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	// The lines have placeholders for secrets, and so must the pattern.
	re, err := regexp.Compile(p.masked(in.Pattern))
	if err != nil {
		return nil, tool.Faultf(tool.CodeBadArguments, "pattern is not a valid regular expression: %w", err).
			WithHint("The syntax is RE2: no look-around and no back-references. Escape . ( ) [ ] { } * + ? | ^ $ to mean themselves.")
	}
	base, err := p.locate(in.Path)
	if err != nil {
		return nil, err
	}
	include := ""
	if in.Include != "" {
		if include, err = p.cleanPattern(in.Include); err != nil {
			return nil, err
		}
	}
	pl, err := p.find(base, protect.Reading)
	if err != nil {
		return nil, err
	}
	defer pl.Close()
	g := &grepper{project: p, re: re, base: p.masked(filepath.ToSlash(base)), include: p.masked(include), all: in.Ignored}
	return g.run(ctx, pl)
}

type grepper struct {
	*project
	re      *regexp.Regexp
	base    string // as it is shown
	include string
	all     bool // also what git ignores
	result  grepResult
	size    int
}

func (s *grepper) run(ctx context.Context, pl *place) (*grepResult, error) {
	s.result.Matches = []grepMatch{}
	left, err := s.walk(ctx, pl, s.all, func(w walked) error {
		if !w.info.Mode().IsRegular() || !s.included(w.shown) {
			return nil
		}
		return s.file(w)
	})
	s.result.Unreadable += left.unreadable
	s.result.Ignored = left.ignored
	if errors.Is(err, errFull) {
		s.result.Truncated, err = true, nil
		s.result.Note = "more lines match; use a narrower pattern, path or include"
	}
	s.result.Count = len(s.result.Matches)
	return &s.result, err
}

// included applies the include glob: to the name alone when it has no slash.
func (s *grepper) included(rel string) bool {
	if s.include == "" {
		return true
	}
	subject := below(s.base, rel)
	if !strings.Contains(s.include, "/") {
		subject = path.Base(rel)
	}
	matched, err := doublestar.Match(s.include, subject)
	return err == nil && matched
}

func (s *grepper) file(w walked) error {
	if w.info.Size() > maxGrepBytes {
		s.result.SkippedLarge++
		return nil
	}
	data, err := s.content(w)
	switch {
	case err != nil:
		// It may have gone or be closed to us; that is no reason to stop.
		s.result.Unreadable++
		return nil //nolint:nilerr // counted, see above
	case len(data) > maxGrepBytes:
		s.result.SkippedLarge++
		return nil
	case isBinary(data):
		s.result.SkippedBinary++
		return nil
	}
	s.result.FilesSearched++
	return s.lines(w.shown, s.shownAs(data, splitLines(data)))
}

// content reads a file up to one byte more than is searched.
func (s *grepper) content(w walked) ([]byte, error) {
	pl := place{
		project: s.project, want: protect.Reading, asked: w.rel, folders: []folder{{root: w.dir}},
		names: namesOf(w.real), name: w.info.Name(), info: w.info, access: protect.Writing,
	}
	f, _, err := pl.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, maxGrepBytes+1))
}

func (s *grepper) lines(path string, doc *document) error {
	for i, l := range doc.shown {
		if doc.hides(i) {
			continue
		}
		at := s.re.FindIndex(l.text)
		if at == nil {
			continue
		}
		if doc.ids == nil { // made when the first line matches
			doc.ids = lineIDs(doc.shown)
		}
		m := grepMatch{Path: path, Line: i + 1, LineID: doc.ids[i], Text: excerpt(l.text, at[0])}
		const fields = 60 // what the names and numbers of a match take in JSON
		s.size += tool.JSONSize(m.Path) + tool.JSONSize(m.Text) + fields
		if len(s.result.Matches) == maxMatches || s.size > maxResultBytes {
			return errFull
		}
		s.result.Matches = append(s.result.Matches, m)
	}
	return nil
}

// excerpt shows a long line around where it matches.
func excerpt(text []byte, at int) string {
	const most, before = 300, 80
	if len(text) <= most {
		return strings.ToValidUTF8(string(text), "\uFFFD")
	}
	from := item.Start(text, max(0, at-before))
	part := item.Begin(text[from:], most)
	shown := strings.ToValidUTF8(string(part), "\uFFFD")
	if from > 0 {
		shown = "…" + shown
	}
	if from+len(part) < len(text) {
		shown += "…"
	}
	return shown
}
