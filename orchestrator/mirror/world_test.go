package mirror

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/due"
	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/runtime/langgraph/langgraphtest"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records/recordstest"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// world is what a sender looks at, and a server.
type world struct {
	*testing.T
	*langgraphtest.Server
	rows        map[thread.ID]thread.Record
	deleted     map[thread.ID]bool
	transcripts map[thread.ID][]byte
	notes       due.Notes
	rest        Rest
	log         bytes.Buffer
	waited      []time.Duration
	now         time.Time
	crashpoints thread.Crashpoints
	whole       bool
	onWait      func()
}

func newWorld(t *testing.T) *world {
	dir := t.TempDir()
	return &world{
		T: t, Server: langgraphtest.New(t), rows: map[thread.ID]thread.Record{}, deleted: map[thread.ID]bool{}, transcripts: map[thread.ID][]byte{},
		notes: due.Notes{Dir: filepath.Join(dir, "due")}, rest: Rest{filepath.Join(dir, "rest")}, now: noon,
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) note(_ context.Context, id thread.ID) error { return w.notes.Note(id) }

// is makes a thread, or changes it, and notes it.
func (w *world) is(rec thread.Record) {
	w.Helper()
	if rec.Kind == "" {
		rec.Kind, rec.Directive, rec.CreatedAt = thread.KindDirective, "team/review", noon
	}
	w.rows[rec.ThreadID] = rec
	w.must(w.notes.Note(rec.ThreadID))
}

// happens appends an event to a transcript.
func (w *world) happens(id thread.ID, typ thread.EventType, payload any) {
	w.Helper()
	data, err := json.Marshal(payload)
	w.must(err)
	line, err := json.Marshal(thread.Event{
		Timestamp: noon, ThreadID: id, Seq: int64(bytes.Count(w.transcripts[id], []byte("\n")) + 1), Type: typ, Payload: data,
	})
	w.must(err)
	w.transcripts[id] = append(append(w.transcripts[id], line...), '\n')
}

func (w *world) asked(id thread.ID, text string) {
	w.happens(id, thread.EventCognitionIn, transcript.CognitionIn{Role: llm.User, Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: text}}})
}

func (w *world) answered(id thread.ID, turn int, text string, calls ...string) {
	blocks := transcript.Blocks{{Type: llm.ReasoningBlock, Text: "a thought"}, {Type: llm.TextBlock, Text: text}}
	for _, call := range calls {
		blocks = append(blocks, llm.Block{Type: llm.ToolUseBlock, ToolCallID: call, ToolName: "read", Input: json.RawMessage(`{"path":"a.go"}`)})
	}
	w.happens(id, thread.EventCognitionOut, transcript.CognitionOut{Turn: turn, Blocks: blocks})
}

func (w *world) gave(id thread.ID, turn int, call, text string) {
	w.happens(id, thread.EventToolCallResult, transcript.ToolCallResult{Turn: turn, CallID: call, Tool: "read", Text: text})
}

func (w *world) Get(_ context.Context, id thread.ID) (thread.Record, error) {
	rec, is := w.rows[id]
	switch {
	case w.deleted[id]:
		return rec, &thread.DeletedError{ID: id, At: noon}
	case !is:
		return rec, fmt.Errorf("%s: %w", id, thread.ErrNotFound)
	}
	return rec, nil
}

func (w *world) List(_ context.Context, f store.Filter) (rows []thread.Record, next string, err error) {
	for _, rec := range w.rows {
		rows = append(rows, rec)
	}
	slices.SortFunc(rows, func(a, b thread.Record) int { return strings.Compare(string(a.ThreadID), string(b.ThreadID)) })
	if f.Cursor == "" && len(rows) > 2 { // pages
		return rows[:2], "2", nil
	}
	if f.Cursor == "2" {
		return rows[2:], "", nil
	}
	return rows, "", nil
}

// free is a lease that anybody can have.
type free struct{}

func (free) Release() error { return nil }
func (free) End() error     { return nil }

func (w *world) mirror() *Mirror {
	w.Helper()
	place, err := langgraph.ParsePlace(w.Setting())
	w.must(err)
	client := langgraph.New(langgraph.Options{Place: place, Now: func() time.Time { return w.now }})
	w.Cleanup(client.Close)
	return &Mirror{
		Client: client, Graph: "rye", Node: "rye", Place: "place", Project: "app", Rows: w, Records: recordstest.InMemory{Transcripts: w.transcripts}, Crashpoints: w.crashpoints, Log: zerolog.New(&w.log),
		Clean: func(text []byte) []byte { return bytes.ReplaceAll(text, []byte("sk-hush"), []byte("[key]")) },
	}
}

func (w *world) sender() *Sender {
	w.Helper()
	return &Sender{
		Mirror: w.mirror(), Outbox: Notes{w.notes, func() time.Time { return w.now }}, Rest: w.rest, Now: func() time.Time { return w.now }, Whole: w.whole,
		Lease: func(context.Context) (life.Hold, error) { return free{}, nil },
		Wait: func(_ context.Context, d time.Duration) error {
			w.waited = append(w.waited, d)
			if w.onWait != nil {
				w.onWait()
			}
			return nil
		},
	}
}

func (w *world) send() Sent {
	w.Helper()
	sent, err := w.sender().Run(w.Context())
	w.must(err)
	return sent
}

// there is the copy of a thread, or fails.
func (w *world) there(id thread.ID) langgraphtest.Thread {
	w.Helper()
	at := IDOf("place", id).String()
	for _, t := range w.Threads() {
		if t.ID == at {
			return t
		}
	}
	w.Fatalf("%s is not there", id)
	return langgraphtest.Thread{}
}

// inWords are the messages of a thread there, in few words.
func inWords(t langgraphtest.Thread) string {
	var all []string
	for _, m := range t.Messages {
		text := fmt.Sprintf("%v:%v", m["type"], m["content"])
		if calls, is := m["tool_calls"].([]any); is {
			for _, c := range calls {
				text += fmt.Sprintf("(%v)", c.(map[string]any)["id"])
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}
