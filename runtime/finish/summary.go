package finish

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

// SummaryID names the knowledge entry that sums up a thread for its successor,
// below agent/threads/; [KnowledgeID] is the whole id.
func SummaryID(directive string, id thread.ID) string {
	return path.Join(directive, path.Base(string(id))+"-summary")
}

// KnowledgeID is the id of the knowledge item that a [SummaryID] stands for.
func KnowledgeID(summaryID string) string { return path.Join(threadsFolder, summaryID) }

// WriteSummary writes the summary of a thread that is about to hand over as a
// knowledge entry beside the thread's rendering, in place of one that is there.
func (f *Finisher) WriteSummary(rec thread.Record, text string) error {
	if f.KnowledgeDir == "" {
		return errors.New("there is no folder for knowledge")
	}
	id := KnowledgeID(SummaryID(rec.Directive, rec.ThreadID))
	head := f.entryOf(rec, id)
	head.Title, head.EntryType = "Summary of thread: "+rec.Name, "thread_summary"
	return f.writeEntry(id, head, []byte(text+"\n"))
}

// KeepSummary returns what takes back a summary that is written from now on: it puts
// back what is there now, or removes it.
func (f *Finisher) KeepSummary(directive string, id thread.ID) (undo func() error, err error) {
	if f.KnowledgeDir == "" {
		return func() error { return nil }, nil
	}
	name := filepath.Base(f.KnowledgeDir) + "/" + KnowledgeID(SummaryID(directive, id)) + ".md"
	before, err := f.readEntry(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return func() error { return f.removeEntry(name) }, nil
	case err != nil:
		return nil, err
	}
	return func() error {
		if now, err := f.readEntry(name); err == nil && string(now) == string(before) {
			return nil
		}
		return f.putEntry(name, before)
	}, nil
}

// maxKept bounds what is kept of a summary that was there, in bytes.
const maxKept = 4 << 20

// readEntry reads a file below .ai, as putEntry writes it.
func (f *Finisher) readEntry(name string) (text []byte, err error) {
	err = f.inAI(func(ai *os.Root) error {
		text, err = regular.ReadIn(ai, name, maxKept)
		if errors.Is(err, regular.ErrNot) || errors.Is(err, regular.ErrTooLarge) {
			err = fmt.Errorf("%s is no file of a summary", name)
		}
		return err
	})
	return text, err
}

// removeEntry removes a file below .ai, which need not be there.
func (f *Finisher) removeEntry(name string) error {
	err := f.inAI(func(ai *os.Root) error { return ai.Remove(name) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// inAI does something below .ai, as [Finisher.putEntry] does.
func (f *Finisher) inAI(do func(*os.Root) error) error {
	ai, err := os.OpenRoot(filepath.Dir(f.KnowledgeDir))
	if err != nil {
		return err
	}
	return errors.Join(do(ai), ai.Close())
}
