package file

import (
	"cmp"
	"context"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type lsInput struct {
	Path string `json:"path,omitempty" default:"." jsonschema:"directory to list, relative to the project"`
}

type lsResult struct {
	Path      string    `json:"path"`
	Entries   []lsEntry `json:"entries"`
	Total     int       `json:"total"`
	Truncated bool      `json:"truncated,omitempty"`
	Note      string    `json:"note,omitempty"`
}

type lsEntry struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Bytes  *int64 `json:"bytes,omitempty"`  // of regular files
	Target string `json:"target,omitempty"` // of symbolic links
}

func lsTool() tool.Tool {
	return tool.New(tool.Definition{
		ID: "rye/file-system/ls",
		Description: "List a directory of the project: names, types and sizes, sorted by name, at most 1000. " +
			"For whole trees use rye/file-system/glob.",
		ReadOnly: true,
	}, ls)
}

func ls(_ context.Context, env tool.Env, in lsInput) (any, error) {
	p, err := open(env)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()
	rel, err := p.locate(in.Path)
	if err != nil {
		return nil, err
	}
	info, err := p.Stat(rel)
	if err != nil {
		return nil, explain(rel, err)
	}
	if !info.IsDir() {
		return nil, tool.Faultf(tool.CodeBadArguments, "%q is not a directory", filepath.ToSlash(rel)).
			WithHint("Read it with rye/file-system/read.")
	}
	return p.list(rel)
}

func (p *project) list(rel string) (*lsResult, error) {
	dir, err := p.Open(rel)
	if err != nil {
		return nil, explain(rel, err)
	}
	defer func() { _ = dir.Close() }()
	found, err := dir.ReadDir(-1)
	if err != nil {
		return nil, explain(rel, err)
	}
	slices.SortFunc(found, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })

	r := &lsResult{Path: filepath.ToSlash(rel), Entries: []lsEntry{}, Total: len(found)}
	size := 0
	for _, d := range found {
		entry := p.entry(rel, d)
		const fields = 60 // what the names and numbers of an entry take in JSON
		size += tool.JSONSize(entry.Name) + tool.JSONSize(entry.Target) + fields
		if len(r.Entries) == maxPaths || size > maxResultBytes {
			r.Truncated = true
			r.Note = "not all entries are listed; find names with rye/file-system/glob"
			break
		}
		r.Entries = append(r.Entries, entry)
	}
	return r, nil
}

// entry describes d. What cannot be found out, because it has just gone, is
// left out.
func (p *project) entry(dir string, d fs.DirEntry) lsEntry {
	e := lsEntry{Name: d.Name(), Type: kind(d.Type())}
	rel := filepath.Join(dir, d.Name())
	switch {
	case d.Type().IsRegular():
		if info, err := p.Lstat(rel); err == nil {
			size := info.Size()
			e.Bytes = &size
		}
	case d.Type()&fs.ModeSymlink != 0:
		if target, err := p.Readlink(rel); err == nil {
			e.Target = target
		}
	}
	return e
}
