package finish

import (
	"errors"
	"path"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
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
