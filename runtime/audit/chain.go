package audit

import (
	"cmp"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// rootOf is the first thread of a chain, which may be left out where the thread is
// that itself.
func rootOf(chainRoot thread.ID, row thread.Record) thread.ID { return cmp.Or(chainRoot, row.ThreadID) }

// continuedBy is the thread that continues this one by the transcript: its outcome
// says so, or what was added behind its end; empty when nothing does.
func (a *auditor) continuedBy(outcome thread.Outcome, head *thread.TranscriptHead) (by thread.ID) {
	if outcome.Handoff != nil {
		return outcome.Handoff.NewThreadID
	}
	if head != nil && a.Transcript.Bytes == head.Bytes {
		return "" // nothing was added
	}
	for e, err := range transcript.Events(a.left.Transcript()) {
		if err != nil {
			break // a torn line, which has been judged
		}
		if e.Type != thread.EventThreadResumed {
			continue
		}
		if resumed, err := transcript.Decode[transcript.ThreadResumed](e); err == nil {
			by = resumed.NewThreadID
		}
	}
	return by
}

// compareSuccessor holds what the transcript says of the thread's successor
// against the registry, by which chains are followed. A crash can leave either of
// them silent, so only a contradiction is damage.
func (a *auditor) compareSuccessor(by thread.ID) {
	known := a.Row.ContinuationThreadID
	switch {
	case by == known:
	case by == "":
		a.Warnings = append(a.Warnings, transcriptFile+": it does not say that thread "+string(known)+
			" continues this one, as the registry does; a crash may have kept it from that, or its end was cut off")
	case known == "":
		a.Warnings = append(a.Warnings, registryFile+": it does not know that thread "+string(by)+
			" continues this one, as the transcript says")
	default:
		a.find(registryFile, transcript.Altered, "it says that thread %s continues this one, and the transcript that %.80q does", known, by)
	}
}
