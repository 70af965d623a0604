package file

import (
	"context"
	"io/fs"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type lsInput struct {
	Path string `json:"path,omitempty" default:"."`
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

	Protected bool `json:"protected,omitempty"` // no file tool touches it
}

func lsTool(s *space) tool.Tool {
	return tool.New(tool.Definition{
		ID:          "rye/file-system/ls",
		Description: "List a directory of the project: names, types and sizes, at most 1000.",
		ReadOnly:    true,
	}, s.ls)
}

func (s *space) ls(_ context.Context, env tool.Env, in lsInput) (any, error) {
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
	switch {
	case pl.info == nil:
		return nil, explain(rel, fs.ErrNotExist)
	case !pl.isDir():
		return nil, tool.Faultf(tool.CodeBadArguments, "%q is not a directory", filepath.ToSlash(rel)).
			WithHint("Read it with rye/file-system/read.")
	}
	return p.list(pl)
}

func (p *project) list(pl *place) (*lsResult, error) {
	found, err := p.entries(pl.in())
	if err != nil {
		return nil, explain(pl.asked, err)
	}
	r := &lsResult{Path: filepath.ToSlash(pl.asked), Entries: []lsEntry{}, Total: len(found)}
	size := 0
	for _, d := range found {
		entry := p.describe(pl, d)
		const fields = 80 // what the names and numbers of an entry take in JSON
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

// describe tells about an entry of a folder. Of an entry that has just gone, or that
// is protected, it tells the name only.
func (p *project) describe(pl *place, d entry) lsEntry {
	e := lsEntry{Name: d.shown, Type: kind(d.Type())}
	info, err := pl.in().Lstat(d.Name())
	if err != nil {
		return e
	}
	if p.accessTo(filepath.Join(pl.rel(), d.Name()), info) == protect.Nothing {
		e.Protected = true
		return e
	}
	switch {
	case d.Type().IsRegular():
		size := info.Size()
		e.Bytes = &size
	case d.Type()&fs.ModeSymlink != 0:
		if target, err := pl.in().Readlink(d.Name()); err == nil {
			e.Target = target
		}
	}
	return e
}
