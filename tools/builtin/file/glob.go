package file

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxPaths is the most paths one glob or ls returns.
const maxPaths = 1000

type globInput struct {
	Pattern string `json:"pattern" jsonschema:"for example **/*.go or src/{a,b}/*.ts; * stays within one directory, ** crosses them"`
	Path    string `json:"path,omitempty" default:"." jsonschema:"directory that the pattern is relative to"`
}

type globResult struct {
	Files      []string `json:"files"`
	Count      int      `json:"count"`
	Truncated  bool     `json:"truncated,omitempty"`
	Unreadable int      `json:"unreadable_directories,omitempty"`
	Note       string   `json:"note,omitempty"`
}

func globTool() tool.Tool {
	return tool.New(tool.Definition{
		ID: "rye/file-system/glob",
		Description: "Find files of the project by name pattern. Returns paths relative to the project, sorted, at most " +
			"1000. Directories are not listed; .git and the state of threads are skipped.",
		ReadOnly: true,
	}, glob)
}

func glob(ctx context.Context, env tool.Env, in globInput) (any, error) {
	p, err := open(env)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	base, err := p.locate(in.Path)
	if err != nil {
		return nil, err
	}
	info, err := p.Stat(base)
	if err != nil {
		return nil, explain(base, err)
	}
	if !info.IsDir() {
		return nil, tool.Faultf(tool.CodeBadArguments, "path %q is not a directory", filepath.ToSlash(base))
	}
	return p.glob(ctx, filepath.ToSlash(base), in.Pattern)
}

// errFull ends a walk early; it never leaves this package.
var errFull = errors.New("result is full")

func (p *project) glob(ctx context.Context, base, pattern string) (*globResult, error) {
	pattern, err := p.cleanPattern(pattern)
	if err != nil {
		return nil, err
	}
	// The part before the first wildcard says where to start.
	fixed, _ := doublestar.SplitPattern(pattern)
	start, err := p.locate(path.Join(base, fixed))
	if err != nil {
		return nil, err
	}
	result := &globResult{Files: []string{}}
	if _, err := p.Stat(start); errors.Is(err, fs.ErrNotExist) {
		return result, nil
	}
	size := 0
	result.Unreadable, err = p.walk(ctx, start, func(rel string, _ fs.DirEntry) error {
		if matched, err := doublestar.Match(pattern, below(base, rel)); err != nil || !matched {
			return err
		}
		size += tool.JSONSize(rel) + 1
		if len(result.Files) == maxPaths || size > maxResultBytes {
			return errFull
		}
		result.Files = append(result.Files, rel)
		return nil
	})
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
