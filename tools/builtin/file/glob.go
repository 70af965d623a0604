package file

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxPaths is the most paths one glob or ls returns.
const maxPaths = 1000

type globInput struct {
	Pattern string `json:"pattern" jsonschema:"for example **/*.go or src/{a,b}/*.ts"`
	Path    string `json:"path,omitempty" default:"."`
	Ignored bool   `json:"include_ignored,omitempty" alias:"no_ignore" jsonschema:"also what .gitignore names"`
}

type globResult struct {
	Files      []string `json:"files"`
	Count      int      `json:"count"`
	Truncated  bool     `json:"truncated,omitempty"`
	Unreadable int      `json:"unreadable_directories,omitempty"`
	Ignored    int      `json:"skipped_ignored,omitempty"` // files and folders
	Note       string   `json:"note,omitempty"`
}

func globTool(s *space) tool.Tool {
	return tool.New(tool.Definition{
		ID:          "rye/file-system/glob",
		Description: "Find files of the project by name pattern, at most 1000. Skips what .gitignore names, and protected files.",
		ReadOnly:    true,
	}, s.glob)
}

func (s *space) glob(ctx context.Context, env tool.Env, in globInput) (any, error) {
	p, err := s.open(env)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	base, err := p.locate(in.Path)
	if err != nil {
		return nil, err
	}
	pl, err := p.find(base, protect.Reading)
	if err != nil {
		return nil, err
	}
	pl.Close()
	switch {
	case pl.info == nil:
		return nil, explain(base, fs.ErrNotExist)
	case !pl.isDir():
		return nil, tool.Faultf(tool.CodeBadArguments, "path %q is not a directory", filepath.ToSlash(base))
	}
	return p.glob(ctx, filepath.ToSlash(base), in)
}

// errFull ends a walk early; it never leaves this package.
var errFull = errors.New("result is full")

func (p *project) glob(ctx context.Context, base string, in globInput) (*globResult, error) {
	pattern, err := p.cleanPattern(in.Pattern)
	if err != nil {
		return nil, err
	}
	// The part before the first wildcard says where to start, unless it may be a part
	// of a secret.
	fixed := ""
	if p.masked(pattern) == pattern {
		fixed, _ = doublestar.SplitPattern(pattern)
	}
	start, err := p.locate(path.Join(base, fixed))
	if err != nil {
		return nil, err
	}
	pl, err := p.find(start, protect.Reading)
	if err != nil {
		return nil, err
	}
	defer pl.Close()
	result := &globResult{Files: []string{}}
	if pl.info == nil {
		return result, nil
	}
	// Names are matched as they are shown, or patterns would spell out a secret.
	pattern, base = p.masked(pattern), p.masked(base)
	size := 0
	left, err := p.walk(ctx, pl, in.Ignored, func(w walked) error {
		if matched, err := doublestar.Match(pattern, below(base, w.shown)); err != nil || !matched {
			return err
		}
		size += tool.JSONSize(w.shown) + 1
		if len(result.Files) == maxPaths || size > maxResultBytes {
			return errFull
		}
		result.Files = append(result.Files, w.shown)
		return nil
	})
	result.Unreadable, result.Ignored = left.unreadable, left.ignored
	if errors.Is(err, errFull) {
		result.Truncated, err = true, nil
		result.Note = "more files match; use a narrower pattern or path"
	}
	result.Count = len(result.Files)
	return result, err
}

// cleanPattern checks a pattern; an absolute one must lie in the project.
func (p *project) cleanPattern(pattern string) (string, error) {
	if !doublestar.ValidatePattern(pattern) {
		return "", tool.Faultf(tool.CodeBadArguments, "%q is not a valid glob pattern", pattern).
			WithHint("Use *, **, ?, [a-z] and {a,b}; a backslash takes away a special meaning.")
	}
	pattern = strings.TrimPrefix(pattern, "./")
	if path.IsAbs(pattern) {
		inProject, ok := strings.CutPrefix(pattern, filepath.ToSlash(p.dir)+"/")
		if !ok {
			return "", outside(pattern)
		}
		pattern = inProject
	}
	return pattern, nil
}
