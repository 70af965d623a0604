package file

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type writeInput struct {
	Path       string      `json:"path,omitempty" jsonschema:"relative to the project"`
	Content    *string     `json:"content,omitempty"`
	Mode       string      `json:"mode,omitempty" enum:"replace,append" default:"replace" jsonschema:"append adds to the end as it is: begin with a line break where the last line has none"`
	Files      []writeFile `json:"files,omitempty" jsonschema:"several at once; all are checked before the first is written"`
	CreateDirs bool        `json:"create_dirs,omitempty" default:"true"`
}

type writeFile struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Mode    string `json:"mode,omitempty" enum:"replace,append"`
}

// modeAppend adds to a file. The other mode replaces it.
const modeAppend = "append"

type writeResult struct {
	Files []writtenFile `json:"files"`
}

type writtenFile struct {
	Path    string `json:"path"`
	Bytes   int    `json:"bytes"`
	Created bool   `json:"created"`
}

func writeTool(s *space) tool.Tool {
	return tool.New(tool.Definition{
		ID: "rye/file-system/write",
		Description: "Write a file of the project, or several: path and content, or files. Replaces a file that exists; " +
			"to change parts of one use rye/file-system/edit_lines.",
	}, s.write)
}

func (s *space) write(ctx context.Context, env tool.Env, in writeInput) (any, error) {
	files, err := wanted(in)
	if err != nil {
		return nil, err
	}
	p, err := s.open(env)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()

	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	if err := p.takeTurn(ctx, files); err != nil {
		return nil, err
	}
	defer p.turn.release()
	if err := p.checkAll(files, in.CreateDirs); err != nil {
		return nil, err
	}
	result := writeResult{Files: make([]writtenFile, 0, len(files))}
	for _, f := range files {
		if ctx.Err() != nil {
			return nil, partly(result, tool.AsFault(context.Cause(ctx)))
		}
		written, err := p.put(f, in.CreateDirs)
		if err != nil {
			return nil, partly(result, tool.AsFault(err))
		}
		result.Files = append(result.Files, written)
	}
	return result, nil
}

// partly tells, with a failure, which files were written before it.
func partly(done writeResult, f *tool.Fault) *tool.Fault {
	if len(done.Files) == 0 {
		return f
	}
	return f.With("written", done.Files)
}

// wanted brings both forms of the input into one, in which every file has a mode.
func wanted(in writeInput) ([]writeFile, error) {
	single := in.Path != "" || in.Content != nil
	switch {
	case single && len(in.Files) > 0:
		return nil, badForm("both path/content and files are given")
	case len(in.Files) > 0:
		files := slices.Clone(in.Files)
		for i := range files {
			files[i].Mode = cmp.Or(files[i].Mode, in.Mode)
		}
		return files, nil
	case in.Path == "":
		return nil, badForm(`missing property "path"`)
	case in.Content == nil:
		return nil, badForm(`missing property "content"`)
	default:
		return []writeFile{{Path: in.Path, Content: *in.Content, Mode: in.Mode}}, nil
	}
}

func badForm(problem string) *tool.Fault {
	return tool.Faultf(tool.CodeBadArguments, "%s", problem).
		WithHint(`Give "path" and "content", or "files": [{"path": …, "content": …}].`)
}

// takeTurn takes the turn for all files. The later steps tell what is wrong with one.
func (p *project) takeTurn(ctx context.Context, files []writeFile) (err error) {
	var keys []string
	for _, f := range files {
		rel, err := p.locate(f.Path)
		if err != nil {
			return err
		}
		pl, err := p.find(rel, protect.Writing)
		if err != nil {
			return err
		}
		keys = append(keys, p.key(pl))
		pl.Close()
	}
	p.turn, err = p.guard.take(ctx, keys...)
	return err
}

// checkAll checks every file; nothing is written while one of them is refused.
func (p *project) checkAll(files []writeFile, createDirs bool) error {
	taken := make(map[string]bool, len(files))
	for i, f := range files {
		pl, _, err := p.ready(f, createDirs)
		if err != nil {
			return err
		}
		pl.Close()
		if taken[pl.rel()] {
			return tool.Faultf(tool.CodeBadArguments, "files[%d]: %q is named twice", i, filepath.ToSlash(pl.asked))
		}
		taken[pl.rel()] = true
	}
	return nil
}

// ready finds the place of a file and what it will hold, and checks both. The
// caller closes the place.
func (p *project) ready(f writeFile, createDirs bool) (pl *place, content []byte, err error) {
	rel, err := p.locate(f.Path)
	if err != nil {
		return nil, nil, err
	}
	if pl, err = p.find(rel, protect.Writing); err != nil {
		return nil, nil, err
	}
	if err = pl.checkTarget(createDirs); err == nil {
		content, err = p.contentAfter(pl, f)
	}
	if err != nil {
		pl.Close()
		return nil, nil, err
	}
	return pl, content, nil
}

// contentAfter is what a file holds when it is written. Appending, too, replaces
// it, so that nobody finds a part of what was added; a change that a command makes
// between reading and replacing is lost, as with every editor.
func (p *project) contentAfter(pl *place, f writeFile) ([]byte, error) {
	var before []byte
	if pl.info != nil && (f.Mode == modeAppend || p.isItem(pl) || p.env.ThreadID != "") {
		var err error
		if before, _, err = pl.content(); err != nil {
			if f.Mode == modeAppend {
				return nil, err
			}
			before = nil // a file that cannot be read can be replaced
		}
	}
	if f.Mode != modeAppend { // which undoes nothing
		if err := p.mayReplace(pl, before, pl.info != nil); err != nil {
			return nil, err
		}
	}
	after := []byte(f.Content)
	if f.Mode == modeAppend {
		if len(before)+len(after) > maxFileBytes {
			return nil, tooLarge(pl.asked, fmt.Sprintf("%d bytes with what is appended", len(before)+len(after)), fmt.Sprintf("%d MiB", maxFileBytes>>20))
		}
		after = slices.Concat(before, after)
	}
	return after, p.checkContent(pl, before, after)
}

// put writes one file that has been checked. It is checked again: a file before
// it may have changed what stands there.
func (p *project) put(f writeFile, createDirs bool) (writtenFile, error) {
	pl, content, err := p.ready(f, createDirs)
	if err != nil {
		return writtenFile{}, err
	}
	defer pl.Close()
	if err := pl.make(); err != nil {
		return writtenFile{}, err
	}
	if err := pl.replace(content); err != nil {
		return writtenFile{}, err
	}
	before := content[:len(content)-len(f.Content)] // where it was added to
	p.wrote(pl, before, content, f.Mode != modeAppend || pl.info == nil)
	return writtenFile{Path: filepath.ToSlash(pl.asked), Bytes: len(content), Created: pl.info == nil}, nil
}
