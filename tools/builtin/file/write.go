package file

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type writeInput struct {
	Path       string      `json:"path,omitempty" jsonschema:"file to write, relative to the project; together with content"`
	Content    *string     `json:"content,omitempty" jsonschema:"the whole new content of the file"`
	Files      []writeFile `json:"files,omitempty" jsonschema:"several files instead of path and content; all are checked before the first is written"`
	CreateDirs bool        `json:"create_dirs,omitempty" default:"true" jsonschema:"make missing directories"`
}

type writeFile struct {
	Path    string `json:"path" jsonschema:"file to write, relative to the project"`
	Content string `json:"content" jsonschema:"the whole new content of the file"`
}

type writeResult struct {
	Files []writtenFile `json:"files"`
}

type writtenFile struct {
	Path    string `json:"path"`
	Bytes   int    `json:"bytes"`
	Created bool   `json:"created"`
}

func writeTool(w *writer) tool.Tool {
	return tool.New(tool.Definition{
		ID: "rye/file-system/write",
		Description: "Write a file of the project, or several: path and content, or files. Replaces a file that " +
			"exists; to change parts of one use rye/file-system/edit_lines.",
	}, w.write)
}

func (w *writer) write(ctx context.Context, env tool.Env, in writeInput) (any, error) {
	files, err := wanted(in)
	if err != nil {
		return nil, err
	}
	p, err := open(env)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Close() }()

	w.mu.Lock()
	defer w.mu.Unlock()
	plan, err := p.plan(files, in.CreateDirs)
	if err != nil {
		return nil, err
	}
	result := writeResult{Files: make([]writtenFile, 0, len(plan))}
	for _, job := range plan {
		if ctx.Err() != nil {
			return nil, partly(result, tool.AsFault(context.Cause(ctx)))
		}
		if err := p.carryOut(job); err != nil {
			return nil, partly(result, tool.AsFault(err))
		}
		result.Files = append(result.Files, writtenFile{Path: job.shown, Bytes: len(job.content), Created: job.old == nil})
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

// wanted brings both forms of the input into one.
func wanted(in writeInput) ([]writeFile, error) {
	single := in.Path != "" || in.Content != nil
	switch {
	case single && len(in.Files) > 0:
		return nil, badForm("both path/content and files are given")
	case len(in.Files) > 0:
		return in.Files, nil
	case in.Path == "":
		return nil, badForm(`missing property "path"`)
	case in.Content == nil:
		return nil, badForm(`missing property "content"`)
	default:
		return []writeFile{{Path: in.Path, Content: *in.Content}}, nil
	}
}

func badForm(problem string) *tool.Fault {
	return tool.Faultf(tool.CodeBadArguments, "%s", problem).
		WithHint(`Give "path" and "content", or "files": [{"path": …, "content": …}].`)
}

// writeJob is one file that has been checked.
type writeJob struct {
	shown   string // path for the result
	rel     string // behind symbolic links
	content string
	old     fs.FileInfo // the file that is replaced; nil when there is none
}

// plan checks every file; nothing is written while one of them is refused.
func (p *project) plan(files []writeFile, createDirs bool) ([]writeJob, error) {
	jobs := make([]writeJob, 0, len(files))
	taken := make(map[string]bool, len(files))
	for i, f := range files {
		job, err := p.check(f, createDirs)
		if err != nil {
			return nil, err
		}
		if taken[filepath.Clean(job.rel)] {
			return nil, tool.Faultf(tool.CodeBadArguments, "files[%d]: %q is named twice", i, job.shown)
		}
		taken[filepath.Clean(job.rel)] = true
		jobs = append(jobs, job)
	}
	return jobs, nil
}

func (p *project) check(f writeFile, createDirs bool) (writeJob, error) {
	rel, err := p.locate(f.Path)
	if err != nil {
		return writeJob{}, err
	}
	shown := filepath.ToSlash(rel)
	rel, info, err := p.target(rel)
	if err != nil {
		return writeJob{}, err
	}
	job := writeJob{shown: shown, rel: rel, content: f.Content, old: info}
	if info != nil {
		return job, nil
	}
	return job, p.checkParent(rel, createDirs)
}

func (p *project) carryOut(job writeJob) error {
	if job.old == nil {
		if err := p.MkdirAll(dirOf(job.rel), 0o777); err != nil {
			return explain(job.rel, fmt.Errorf("make its directory: %w", err))
		}
	}
	return p.replace(job.rel, []byte(job.content), job.old)
}
