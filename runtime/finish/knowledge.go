package finish

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// maxRendering bounds the rendering: knowledge beyond 4 MiB is not loaded, and
// the transcript has everything.
const maxRendering = 2 << 20

// KnowledgeDir is the folder of a project's knowledge items.
func KnowledgeDir(project string) string {
	return filepath.Join(project, ".ai", "knowledge")
}

// threadsFolder is where the knowledge about threads lies.
const threadsFolder = item.ThreadRecords

// entry is the metadata of knowledge about a thread.
type entry struct {
	Name            string       `yaml:"name"`
	Title           string       `yaml:"title"`
	Description     string       `yaml:"description,omitempty"`
	EntryType       string       `yaml:"entry_type"`
	Category        string       `yaml:"category"`
	ThreadID        thread.ID    `yaml:"thread_id"`
	Directive       string       `yaml:"directive"`
	Status          thread.State `yaml:"status,omitempty"` // of the thread
	CreatedAt       string       `yaml:"created_at"`       // of the thread
	CapabilitiesRef string       `yaml:"capabilities_ref"`
}

// entryOf is the metadata of the entry with that id.
func (f *Finisher) entryOf(rec thread.Record, id string) entry {
	return entry{
		Name: path.Base(id), Category: path.Dir(id), ThreadID: rec.ThreadID, Directive: rec.Directive,
		CreatedAt:       rec.CreatedAt.Format("2006-01-02T15:04:05Z"),
		CapabilitiesRef: f.inProject(f.Records.Of(rec.ThreadID).Capabilities().Where()),
	}
}

// inProject is a path of the project as seen from its folder.
func (f *Finisher) inProject(path string) string {
	rel, err := filepath.Rel(filepath.Dir(filepath.Dir(f.KnowledgeDir)), path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

// RenderingID is the knowledge id of a thread: its directive as a folder, then
// the last segment of its id.
func RenderingID(rec thread.Record) string {
	return path.Join(threadsFolder, rec.Directive, path.Base(string(rec.ThreadID)))
}

// Rendering is the path of a thread's knowledge entry.
func Rendering(knowledgeDir string, rec thread.Record) string {
	return entryPath(knowledgeDir, RenderingID(rec))
}

func entryPath(knowledgeDir, id string) string {
	return filepath.Join(knowledgeDir, filepath.FromSlash(id)+".md")
}

// writeRendering writes the thread as a knowledge entry of the project, so that
// search finds what it did and other threads can be given it. A thread that
// never wrote a transcript gets none.
func (f *Finisher) writeRendering(rec thread.Record) error {
	if f.KnowledgeDir == "" {
		return nil
	}
	var body bytes.Buffer
	err := transcript.Render(f.Records.Of(rec.ThreadID).Transcript(), &body)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.writeEntry(RenderingID(rec), f.renderingOf(rec), shortened(body.Bytes()))
}

// renderingOf is the metadata of a thread's rendering.
func (f *Finisher) renderingOf(rec thread.Record) entry {
	head := f.entryOf(rec, RenderingID(rec))
	head.Title, head.EntryType, head.Status = "Thread: "+rec.Name, "thread_transcript", rec.Status
	if !rec.Status.Terminal() {
		head.Description = "The thread still runs; its record is being written, and not signed before it ends"
	}
	return head
}

// shortened is a rendering within [maxRendering], which says what is left out.
func shortened(body []byte) []byte {
	left := len(body) - maxRendering
	if left <= 0 {
		return body
	}
	note := fmt.Appendf(nil, "[%d bytes left out; the transcript has them]\n\n", left)
	return append(note, bytes.ToValidUTF8(body[left:], nil)...) // the end says how it came out
}

// text is the metadata as it stands in the file.
func (e entry) text() ([]byte, error) {
	metadata, err := yaml.Marshal(e)
	return fmt.Appendf(nil, "```yaml\n%s```\n\n", metadata), err
}

// writeEntry writes a knowledge entry, signed.
func (f *Finisher) writeEntry(id string, head entry, body []byte) error {
	front, err := head.text()
	if err != nil {
		return err
	}
	text := slices.Concat(front, body)
	seal := f.Records.Seal()
	if seal == nil {
		return place.ErrNoState
	}
	text, err = seal.Attach(text, ".md", sign.Name{Kind: string(item.Knowledge), ID: id}, f.Now())
	if err != nil {
		return err
	}
	return f.putEntry(filepath.Base(f.KnowledgeDir)+"/"+id+".md", text)
}

// putEntry replaces a file below .ai. That folder may be a link; a link below it
// does not lead the entry out of it.
func (f *Finisher) putEntry(name string, text []byte) error {
	f.Crashpoints.At(CrashComposed)
	return f.inAI(func(ai *os.Root) error {
		if err := ai.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		draft := draftOf(name)
		if err := writeWhole(ai, draft, text); err != nil {
			return errors.Join(err, ai.Remove(draft))
		}
		f.Crashpoints.At(CrashDrafted)
		return ai.Rename(draft, name)
	})
}

func writeWhole(in *os.Root, name string, text []byte) error {
	file, err := openDraft(in, name)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
