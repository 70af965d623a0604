package folder

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Document is a sealed file beside the folders of threads.
type Document struct {
	home Home
	path string
	kind string
}

// Gone is deleted.json: what outlives the databases of the threads that were deleted.
func (h Home) Gone() Document {
	return Document{h, filepath.Join(h.Dir, "deleted.json"), "rye-deleted-threads"}
}

// maxDocumentBytes bounds a document.
const maxDocumentBytes = 64 << 20

// document is what stands in the file. Its type and its place are signed too.
type document struct {
	Type    string          `json:"type"`
	Place   string          `json:"place"`
	Content json.RawMessage `json:"content"`
}

// Read decodes what the seal vouches for. Without a file, or a seal, the error wraps
// fs.ErrNotExist.
func (d Document) Read(into any) error {
	if d.home.Seal == nil {
		return fmt.Errorf("read %s: %w", d.path, fs.ErrNotExist)
	}
	data, err := readBounded(d.path, maxDocumentBytes)
	if err != nil {
		return err
	}
	var doc document
	at, err := d.home.Seal.Open(data, &doc)
	if err == nil && (doc.Place != at || doc.Type != d.kind) {
		err = fmt.Errorf("%w: it is not of this place", sign.ErrBadSignature)
	}
	if err == nil {
		err = json.Unmarshal(doc.Content, into)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", d.path, err)
	}
	return nil
}

// Write replaces the file atomically.
func (d Document) Write(v any) error {
	if d.home.Seal == nil {
		return fmt.Errorf("write %s: %w", d.path, place.ErrNoState)
	}
	content, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", d.path, err)
	}
	data, err := d.home.Seal.Encode(document{Type: d.kind, Place: d.home.Seal.Place(), Content: content})
	if err != nil {
		return fmt.Errorf("encode %s: %w", d.path, err)
	}
	return replaceFile(d.path, data)
}
