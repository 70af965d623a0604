package finish

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/google/renameio/v2"
	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// maxRendering bounds the rendering: knowledge beyond 4 MiB is not loaded, and
// the transcript has everything.
const maxRendering = 2 << 20

// rendering is the metadata of a thread's knowledge entry.
type rendering struct {
	Name            string       `yaml:"name"`
	Title           string       `yaml:"title"`
	EntryType       string       `yaml:"entry_type"`
	Category        string       `yaml:"category"`
	ThreadID        thread.ID    `yaml:"thread_id"`
	Directive       string       `yaml:"directive"`
	Status          thread.State `yaml:"status"`
	CreatedAt       string       `yaml:"created_at"`
	CapabilitiesRef string       `yaml:"capabilities_ref"`
}

// renderingID is the knowledge id of a thread: its directive as a folder, then
// the last segment of its id.
func renderingID(rec thread.Record) string {
	return path.Join("agent/threads", rec.Directive, path.Base(string(rec.ThreadID)))
}

// Rendering is the path of a thread's knowledge entry.
func Rendering(knowledgeDir string, rec thread.Record) string {
	return filepath.Join(knowledgeDir, filepath.FromSlash(renderingID(rec))+".md")
}

// writeRendering writes the thread as a knowledge entry of the project, so that
// search finds what it did and other threads can be given it. A thread that
// never wrote a transcript gets none.
func (f *Finisher) writeRendering(rec thread.Record) error {
	if f.KnowledgeDir == "" {
		return nil
	}
	dir := folder.Of(f.StateDir, rec.ThreadID)
	var body bytes.Buffer
	err := transcript.Render(dir.Transcript(), &body)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := f.renderingText(rec, body.Bytes())
	if err != nil {
		return err
	}
	where := Rendering(f.KnowledgeDir, rec)
	if err := os.MkdirAll(filepath.Dir(where), 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(where, text, 0o600, renameio.WithTempDir(filepath.Dir(where)))
}

func (f *Finisher) renderingText(rec thread.Record, body []byte) ([]byte, error) {
	head, err := yaml.Marshal(rendering{
		Name: path.Base(string(rec.ThreadID)), Title: "Thread: " + rec.Name, EntryType: "thread_transcript",
		Category: path.Dir(renderingID(rec)), ThreadID: rec.ThreadID, Directive: rec.Directive, Status: rec.Status,
		CreatedAt: rec.CreatedAt.Format("2006-01-02T15:04:05Z"), CapabilitiesRef: path.Join(".ai/state/threads", string(rec.ThreadID), "capabilities.md"),
	})
	if err != nil {
		return nil, err
	}
	left := 0
	if len(body) > maxRendering {
		left = len(body) - maxRendering
		body = bytes.ToValidUTF8(body[left:], nil) // the end says how it came out
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "```yaml\n%s```\n\n", head)
	if left > 0 {
		fmt.Fprintf(&text, "[%d bytes left out; the transcript has them]\n\n", left)
	}
	text.Write(body)
	if f.Key == nil {
		return text.Bytes(), nil
	}
	return sign.Attach(text.Bytes(), ".md", f.Key, f.Now()), nil
}
