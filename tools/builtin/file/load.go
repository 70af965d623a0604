package file

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// document is a text file in memory.
type document struct {
	rel   string
	data  []byte
	info  fs.FileInfo
	lines []line
	ids   []string // of lines
}

// load reads a text file whole.
func (p *project) load(rel string) (*document, error) {
	data, info, err := p.content(rel)
	if err != nil {
		return nil, err
	}
	return asText(rel, data, info)
}

// content is that of a file of bounded size.
func (p *project) content(rel string) ([]byte, fs.FileInfo, error) {
	f, info, err := p.openRegular(rel)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > maxFileBytes {
		return nil, nil, tooLarge(rel, fmt.Sprintf("%d bytes", info.Size()), fmt.Sprintf("%d MiB", maxFileBytes>>20))
	}
	// The file may have grown since, so the bound is kept while reading too.
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, nil, explain(rel, err)
	}
	if len(data) > maxFileBytes {
		return nil, nil, tooLarge(rel, "a growing size", fmt.Sprintf("%d MiB", maxFileBytes>>20))
	}
	return data, info, nil
}

// asText is the content of a file as lines, if it is text.
func asText(rel string, data []byte, info fs.FileInfo) (*document, error) {
	if isBinary(data) {
		path := filepath.ToSlash(rel)
		return nil, tool.Faultf(tool.CodeUnsupported, "%q is not text: %s, %d bytes", path, http.DetectContentType(data), len(data)).
			With("path", path).With("bytes", len(data))
	}
	lines := splitLines(data)
	if len(lines) > maxLines {
		return nil, tooLarge(rel, fmt.Sprintf("%d lines", len(lines)), fmt.Sprintf("%d lines", maxLines))
	}
	return &document{rel: rel, data: data, info: info, lines: lines, ids: lineIDs(lines)}, nil
}

func tooLarge(rel, has, most string) *tool.Fault {
	path := filepath.ToSlash(rel)
	return tool.Faultf(tool.CodeUnsupported, "%q has %s; at most %s can be read", path, has, most).With("path", path).
		WithHint("Look at parts of it with rye/bash, for example sed -n '1,200p'.")
}
