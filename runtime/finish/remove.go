package finish

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/itemfile"
)

// KnowledgeIDs are the ids of all knowledge entries that a thread may have left.
func KnowledgeIDs(rec thread.Record) []string {
	return []string{RenderingID(rec), KnowledgeID(SummaryID(rec.Directive, rec.ThreadID))}
}

// RemoveKnowledge removes the entries of a thread and their drafts, which nobody may write
// any more. A file in the place of an entry that is not of the thread by what stands in it
// stays, and no link is followed. It can be repeated.
func (f *Finisher) RemoveKnowledge(rec thread.Record) error {
	if err := f.removeEntries(rec, KnowledgeIDs(rec)...); err != nil {
		return fmt.Errorf("remove the knowledge entries of %s: %w", rec.ThreadID, err)
	}
	return nil
}

// ForgetKnowledge is RemoveKnowledge for threads of which the ids alone are known.
func (f *Finisher) ForgetKnowledge(ids []thread.ID) error {
	gone := map[string][]thread.ID{}
	for _, id := range ids {
		name := path.Base(string(id)) + ".md"
		gone[name] = append(gone[name], id)
	}
	_, err := f.Entries(math.MaxInt, func(e Entry) error {
		directive := strings.TrimPrefix(path.Dir(e.Name), f.below(threadsFolder)+"/")
		var err error
		for _, id := range gone[path.Base(e.Name)] {
			err = errors.Join(err, f.RemoveKnowledge(thread.Record{ThreadID: id, Directive: directive}))
		}
		return err
	})
	return err
}

// RemoveSummary removes the summary of a thread that has handed over to nobody, as
// [Finisher.RemoveKnowledge] does.
func (f *Finisher) RemoveSummary(rec thread.Record) error {
	if err := f.removeEntries(rec, KnowledgeID(SummaryID(rec.Directive, rec.ThreadID))); err != nil {
		return fmt.Errorf("remove the summary of %s: %w", rec.ThreadID, err)
	}
	return nil
}

// removeEntries removes entries of a thread, which are all in one folder.
func (f *Finisher) removeEntries(rec thread.Record, ids ...string) error {
	if f.KnowledgeDir == "" {
		return nil
	}
	var names []string
	for _, id := range ids {
		name := path.Base(id) + ".md"
		names = append(names, name, path.Base(draftOf(name)))
	}
	ai, knowledge := filepath.Split(f.KnowledgeDir)
	return itemfile.Remove(ai, path.Join(knowledge, path.Dir(RenderingID(rec))), names, func(name string, head []byte) bool {
		return isDraft(name) || isEntryOf(head, rec.ThreadID)
	})
}

// isEntryOf reports whether the beginning of a file is that of an entry of a thread.
func isEntryOf(head []byte, id thread.ID) bool {
	about, err := readFront(bytes.NewReader(head))
	return err == nil && about.ThreadID == id
}
