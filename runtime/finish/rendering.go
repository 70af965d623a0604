package finish

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// ErrRendering says that the rendering of a thread is not what the thread left.
var ErrRendering = errors.New("the rendering is not that of the thread as it ended")

// maxFront bounds what is read of a knowledge entry to find out what it is about.
const maxFront = 64 << 10

// CheckRendering looks whether a thread that has ended has its knowledge entry. The
// error wraps fs.ErrNotExist where it is missing, and ErrRendering where it is a link,
// is about another thread, or says that the thread has another state. It reads the
// metadata alone.
func (f *Finisher) CheckRendering(rec thread.Record) error {
	if f.KnowledgeDir == "" {
		return nil
	}
	ai, err := f.openAI()
	if err != nil {
		return err
	}
	defer func() { _ = ai.Close() }()
	about, err := frontOf(ai, f.below(RenderingID(rec)+".md"))
	if err != nil {
		return err
	}
	if about.ThreadID != rec.ThreadID || about.Status != rec.Status {
		return fmt.Errorf("%w: it is about %.80q, which is %.20s", ErrRendering, about.ThreadID, about.Status)
	}
	return nil
}

// Render writes the knowledge entry of a thread that has ended, in place of whatever is
// there, through no link. Without a transcript there is nothing to write.
func (f *Finisher) Render(rec thread.Record) error {
	if err := f.writeRendering(rec); err != nil {
		return fmt.Errorf("write the rendering of %s: %w", rec.ThreadID, err)
	}
	return nil
}

// openAI opens the folder .ai to look at the entries in it. No link leads out of the
// project: one in the place of the folder counts as if it were missing, and the error
// wraps fs.ErrNotExist.
func (f *Finisher) openAI() (*os.Root, error) {
	return resolve.OpenAI(filepath.Dir(filepath.Dir(f.KnowledgeDir)), item.Project)
}

// below is the path of a file or folder of knowledge below the folder .ai.
func (f *Finisher) below(name string) string {
	return path.Join(filepath.Base(f.KnowledgeDir), name)
}

// frontOf reads the metadata of a knowledge entry about a thread.
func frontOf(ai *os.Root, name string) (about entry, err error) {
	file, _, err := regular.OpenIn(ai, name)
	if errors.Is(err, regular.ErrNot) {
		err = fmt.Errorf("%w: %s is not a regular file", ErrRendering, name)
	}
	if err != nil {
		return about, err
	}
	defer func() { _ = file.Close() }()
	return readFront(file)
}

func readFront(from io.Reader) (about entry, err error) {
	head, err := io.ReadAll(io.LimitReader(from, maxFront))
	if err != nil {
		return about, err
	}
	_, front, _ := bytes.Cut(head, []byte("```yaml\n"))
	front, _, _ = bytes.Cut(front, []byte("\n```\n"))
	if err := yaml.Unmarshal(front, &about); err != nil || about.ThreadID == "" {
		return entry{}, fmt.Errorf("%w: it does not say which thread it is about", ErrRendering)
	}
	return about, nil
}

// RemoveDraft removes the draft of an entry, which nobody writes any more.
func (f *Finisher) RemoveDraft(e Entry) (err error) {
	if !e.Draft {
		return fmt.Errorf("%s is no draft", e.Name)
	}
	ai, err := f.openAI()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ai.Close()) }()
	if err := ai.Remove(e.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// The names of drafts of entries.
const (
	draftStart = ".rye-"
	draftEnd   = ".tmp"
)

func isDraft(name string) bool {
	return strings.HasPrefix(name, draftStart) && strings.HasSuffix(name, draftEnd)
}

// draftOf is the name of what is written before it is moved to its place as that entry. It
// is always the same: what a killed process leaves goes with the next draft, or with the
// thread.
func draftOf(name string) string {
	sum := sha256.Sum256([]byte(path.Base(name)))
	return path.Join(path.Dir(name), draftStart+hex.EncodeToString(sum[:8])+draftEnd)
}

// openDraft makes the draft of an entry.
func openDraft(ai *os.Root, draft string) (*os.File, error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	file, err := ai.OpenFile(draft, flags, 0o600)
	if !errors.Is(err, fs.ErrExist) {
		return file, err
	}
	if err := ai.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return ai.OpenFile(draft, flags, 0o600)
}
