package mirror

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The keys of the metadata of a thread there.
const (
	keyPlace   = "rye_place"   // id of the place of the project's threads
	keySelf    = "rye_self"    // id of the thread there: one that was copied there has that of another
	keyThread  = "rye_thread"  // id of the thread here
	keySeq     = "rye_seq"     // of the last event of the transcript that is in the state
	keyPending = "rye_pending" // when a fork was begun that has no thread here yet, in Unix seconds
	keyForkOf  = "rye_fork_of" // id of the thread there that was forked
)

// space is that of the ids of threads there: the UUID version 5 of the URL namespace and
// "https://github.com/rye-mcp/rye-mcp/mirror".
var space = uuid.MustParse("1a7aa1c0-7c4f-5e0b-9c5e-6f9f4b1f2a55")

// IDOf is the id there of a thread: a UUID version 5 of the id of its project's place and
// its own.
func IDOf(place string, id thread.ID) uuid.UUID {
	return uuid.NewSHA1(space, []byte(place+"\x00"+string(id)))
}

// idOf is where a thread is there: one that was forked from there is the copy that was
// made for it.
func idOf(place string, rec thread.Record) (id uuid.UUID, forked bool) {
	if copied, is := thread.MirroredAs(rec.Metadata); is {
		if id, err := uuid.Parse(copied); err == nil {
			return id, true
		}
	}
	return IDOf(place, rec.ThreadID), false
}

// IDOf is the id there of a thread here.
func (m *Mirror) IDOf(rec thread.Record) uuid.UUID {
	id, _ := idOf(m.Place, rec)
	return id
}

// isMirrored reports whether a thread has a copy there: runs of tools and sets have said
// nothing, and what was taken in from a recording is somebody else's.
func isMirrored(rec thread.Record) bool {
	return rec.Kind == thread.KindDirective && !thread.IsImported(rec.Metadata)
}

// metadata is what a row says of its thread, but for what the state has. Values that are
// not there are null: the server merges, and what was there before must go.
func (m *Mirror) metadata(rec thread.Record, self uuid.UUID) map[string]any {
	said := map[string]any{
		langgraph.GraphKey: m.Graph, keyPlace: m.Place, keySelf: self.String(), keyThread: string(rec.ThreadID), keyPending: nil,
		"rye_project": m.Project, "rye_directive": rec.Directive, "rye_status": string(rec.Status), "rye_name": orNull(rec.Name),
		"rye_model": orNull(rec.Model), "rye_parent": orNull(string(rec.ParentID)), "rye_continues": orNull(string(rec.ContinuationOf)),
		"rye_continued_by": orNull(string(rec.ContinuationThreadID)), "rye_created_at": stamp(rec.CreatedAt), "rye_ended_at": stamp(rec.CompletedAt),
		"rye_turns": rec.Cost.Turns, "rye_input_tokens": rec.Cost.InputTokens, "rye_output_tokens": rec.Cost.OutputTokens,
		"rye_spend": rec.Cost.Spend.Dollars(), "rye_labels": labels(rec.Metadata), "rye_error": nil,
	}
	if rec.Outcome != nil && rec.Outcome.Error != nil {
		said["rye_error"] = rec.Outcome.Error.Code + ": " + rec.Outcome.Error.Message
	}
	return m.cleanValues(said)
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func stamp(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.UTC().Format(time.RFC3339)
}

// labels is what somebody has noted of a thread.
func labels(raw json.RawMessage) any {
	var noted map[string]any
	if json.Unmarshal(raw, &noted) != nil {
		return nil
	}
	for key := range noted {
		if thread.Reserved(key) {
			delete(noted, key)
		}
	}
	if len(noted) == 0 {
		return nil
	}
	return noted
}

// cleanValues takes out of metadata what must not leave this machine, and turns it into
// the types of JSON.
func (m *Mirror) cleanValues(said map[string]any) map[string]any {
	data, err := json.Marshal(said)
	if err != nil {
		return nil // it is text, numbers and what was JSON
	}
	var clean map[string]any
	if json.Unmarshal(m.clean(data), &clean) != nil {
		return nil
	}
	return clean
}

// clean is a text without what must not leave this machine.
func (m *Mirror) clean(text []byte) []byte {
	if m.Clean == nil {
		return text
	}
	return m.Clean(text)
}

// isOurs reports whether a thread there is the copy of a thread of this project, and no
// copy that somebody has made of that.
func (m *Mirror) isOurs(t langgraph.Thread) bool {
	return t.Text(keyPlace) == m.Place && strings.EqualFold(t.Text(keySelf), t.ID.String())
}

// isOf reports whether a thread there is the copy of that thread.
func (m *Mirror) isOf(t langgraph.Thread, id thread.ID) bool {
	return m.isOurs(t) && t.Text(keyThread) == string(id)
}

// seqOf is how far the state of a thread there goes, as its metadata say.
func seqOf(t langgraph.Thread) int64 {
	seq, is := t.Metadata[keySeq].(float64)
	if !is || seq < 0 || seq > 1<<53 {
		return 0
	}
	return int64(seq)
}
