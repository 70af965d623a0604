package file

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// document is a text file in memory: its lines as they are, which are written,
// and as they are shown, which have the ids and are searched.
type document struct {
	rel    string
	data   []byte
	info   fs.FileInfo
	lines  []line
	shown  []line
	hidden []bool   // signature lines; empty when there are none
	ids    []string // of the lines as they are shown; those of hidden lines name nothing
}

// load reads a text file whole.
func (p *project) load(pl *place) (*document, error) {
	data, info, err := pl.content()
	if err != nil {
		return nil, err
	}
	return p.asText(pl.asked, data, info)
}

// content is that of a file of bounded size.
func (pl *place) content() ([]byte, fs.FileInfo, error) {
	f, info, err := pl.open()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	if info.Size() > maxFileBytes {
		return nil, nil, tooLarge(pl.asked, fmt.Sprintf("%d bytes", info.Size()), fmt.Sprintf("%d MiB", maxFileBytes>>20))
	}
	// The file may have grown since, so the bound is kept while reading too.
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, nil, explain(pl.asked, err)
	}
	if len(data) > maxFileBytes {
		return nil, nil, tooLarge(pl.asked, "a growing size", fmt.Sprintf("%d MiB", maxFileBytes>>20))
	}
	return data, info, nil
}

// asText is the content of a file as lines, if it is text.
func (p *project) asText(rel string, data []byte, info fs.FileInfo) (*document, error) {
	if isBinary(data) {
		path := filepath.ToSlash(rel)
		return nil, tool.Faultf(tool.CodeUnsupported, "%q is not text: %s, %d bytes", path, http.DetectContentType(data), len(data)).
			With("path", path).With("bytes", len(data))
	}
	lines := splitLines(data)
	if len(lines) > maxLines {
		return nil, tooLarge(rel, fmt.Sprintf("%d lines", len(lines)), fmt.Sprintf("%d lines", maxLines))
	}
	doc := p.shownAs(data, lines)
	doc.rel, doc.data, doc.info = rel, data, info
	doc.ids = lineIDs(doc.shown)
	return doc, nil
}

// shownAs decides how lines are shown: without secrets, and signatures not at all.
// There are as many lines as before, so that numbers and ids are those of the file.
func (p *project) shownAs(data []byte, lines []line) *document {
	doc := &document{lines: lines, shown: lines}
	if p.mask != nil {
		if masked := p.mask.MaskLines(string(data)); masked != string(data) {
			doc.shown = splitLines([]byte(masked))
		}
	}
	if !bytes.Contains(data, []byte(signatureStart)) {
		return doc
	}
	doc.hidden = make([]bool, len(lines))
	doc.shown = append([]line(nil), doc.shown...)
	for i, l := range lines {
		if sign.Holds(l.text) {
			doc.hidden[i], doc.shown[i].text = true, nil
		}
	}
	return doc
}

// signatureStart is in every line that [sign.Holds] finds.
const signatureStart = "rye:signed"

// hides reports whether line i is not shown.
func (d *document) hides(i int) bool { return len(d.hidden) > 0 && d.hidden[i] }

func tooLarge(rel, has, most string) *tool.Fault {
	path := filepath.ToSlash(rel)
	return tool.Faultf(tool.CodeUnsupported, "%q has %s; at most %s can be read", path, has, most).With("path", path).
		WithHint("Look at parts of it with rye/bash, for example sed -n '1,200p'.")
}
