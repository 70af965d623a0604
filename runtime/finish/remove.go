package finish

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"

	"gopkg.in/yaml.v3"

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
	if f.KnowledgeDir == "" {
		return nil
	}
	var names []string // all in one folder
	for _, id := range KnowledgeIDs(rec) {
		name := path.Base(id) + ".md"
		names = append(names, name, path.Base(draftOf(name)))
	}
	ai, knowledge := filepath.Split(f.KnowledgeDir)
	err := itemfile.Remove(ai, path.Join(knowledge, path.Dir(RenderingID(rec))), names, func(name string, head []byte) bool {
		return isDraft(name) || isEntryOf(head, rec.ThreadID)
	})
	if err != nil {
		return fmt.Errorf("remove the knowledge entries of %s: %w", rec.ThreadID, err)
	}
	return nil
}

// isEntryOf reports whether the beginning of a file is that of an entry of a thread.
func isEntryOf(head []byte, id thread.ID) bool {
	_, after, found := bytes.Cut(head, []byte("```yaml\n"))
	front, _, ended := bytes.Cut(after, []byte("```"))
	var e entry
	return found && ended && yaml.Unmarshal(front, &e) == nil && e.ThreadID == id
}
