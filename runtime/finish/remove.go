package finish

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/itemfile"
)

// KnowledgeIDs are the ids of all knowledge entries that a thread may have left.
func KnowledgeIDs(rec thread.Record) []string {
	return []string{RenderingID(rec), KnowledgeID(SummaryID(rec.Directive, rec.ThreadID))}
}

// RemoveKnowledge removes the entries of a thread. A file in the place of one that is not
// of the thread by what stands in it stays, and no link is followed. It can be repeated.
func (f *Finisher) RemoveKnowledge(rec thread.Record) error {
	if f.KnowledgeDir == "" {
		return nil
	}
	ai, knowledge := filepath.Split(f.KnowledgeDir)
	var failed []error
	for _, id := range KnowledgeIDs(rec) {
		err := itemfile.Remove(ai, knowledge+"/"+id+".md", func(head []byte) bool { return isEntryOf(head, rec.ThreadID) })
		if err != nil {
			failed = append(failed, fmt.Errorf("remove the knowledge entry %s: %w", id, err))
		}
	}
	return errors.Join(failed...)
}

// isEntryOf reports whether the beginning of a file is that of an entry of a thread.
func isEntryOf(head []byte, id thread.ID) bool {
	_, after, found := bytes.Cut(head, []byte("```yaml\n"))
	front, _, ended := bytes.Cut(after, []byte("```"))
	var e entry
	return found && ended && yaml.Unmarshal(front, &e) == nil && e.ThreadID == id
}
