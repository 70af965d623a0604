package langgraph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"
)

// Thread is a thread as the server has it.
type Thread struct {
	ID       uuid.UUID
	Status   string // idle, busy, interrupted or error; as the server says it
	Metadata map[string]any
}

// Text is a value of the metadata that is text; else empty.
func (t Thread) Text(key string) string {
	text, _ := t.Metadata[key].(string)
	return text
}

// Graph is the graph that the thread belongs to; empty: none.
func (t Thread) Graph() string { return t.Text(GraphKey) }

// GraphKey is the key of the metadata that names the graph. The server reads and writes
// states only of threads that have it.
const GraphKey = "graph_id"

// wireThread is a thread in an answer.
type wireThread struct {
	ThreadID string         `json:"thread_id"`
	Status   string         `json:"status"`
	Metadata map[string]any `json:"metadata"`
}

func (w wireThread) thread() (Thread, error) {
	id, err := uuid.Parse(w.ThreadID)
	if err != nil || len(w.ThreadID) != 36 {
		return Thread{}, &Error{Fact: ErrNonsense, Status: http.StatusOK, Said: "the thread_id is no UUID"}
	}
	return Thread{ID: id, Status: plain(w.Status), Metadata: w.Metadata}, nil
}

// askThread is ask for an answer that is a thread.
func (c *Client) askThread(ctx context.Context, method string, in any, path ...string) (Thread, error) {
	var w wireThread
	if err := c.ask(ctx, method, in, &w, path...); err != nil {
		return Thread{}, err
	}
	return w.thread()
}

// same refuses an answer about another thread than id.
func same(t Thread, err error, id uuid.UUID) (Thread, error) {
	if err == nil && t.ID != id {
		return Thread{}, &Error{Fact: ErrNonsense, Status: http.StatusOK, Said: fmt.Sprintf("asked for thread %s, it answers with %s", id, t.ID)}
	}
	return t, err
}

const threads = "threads"

// Create makes a thread with an id of ours, or returns the one that is there as it is.
func (c *Client) Create(ctx context.Context, id uuid.UUID, metadata map[string]any) (Thread, error) {
	t, err := c.askThread(ctx, http.MethodPost, map[string]any{
		"thread_id": id.String(), "metadata": metadata, "if_exists": "do_nothing",
	}, threads)
	return same(t, err, id)
}

// Get returns a thread, or an error wrapping [ErrNotFound].
func (c *Client) Get(ctx context.Context, id uuid.UUID) (Thread, error) {
	t, err := c.askThread(ctx, http.MethodGet, nil, threads, id.String())
	return same(t, err, id)
}

// Patch puts values into the metadata of a thread; the others stay. A value is not taken
// away by that, it can become null.
func (c *Client) Patch(ctx context.Context, id uuid.UUID, metadata map[string]any) (Thread, error) {
	t, err := c.askThread(ctx, http.MethodPatch, map[string]any{"metadata": metadata}, threads, id.String())
	return same(t, err, id)
}

// Delete takes a thread away with its states. One that is not there is no error.
func (c *Client) Delete(ctx context.Context, id uuid.UUID) error {
	err := c.ask(ctx, http.MethodDelete, nil, nil, threads, id.String())
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Copy makes another thread with the states and the metadata of one, under an id of the
// server's.
func (c *Client) Copy(ctx context.Context, id uuid.UUID) (Thread, error) {
	t, err := c.askThread(ctx, http.MethodPost, nil, threads, id.String(), "copy")
	if failed := (*Error)(nil); errors.As(err, &failed) && failed.Status == http.StatusConflict {
		err = &Error{Fact: ErrNotFound, Status: failed.Status, Said: failed.Said} // as the development server says it
	}
	if err == nil && t.ID == id {
		return Thread{}, &Error{Fact: ErrNonsense, Status: http.StatusOK, Said: "the copy has the id of the thread"}
	}
	return t, err
}

// PageSize is how many threads are asked for at once.
const PageSize = 100

// Search returns up to [PageSize] of the threads whose metadata have some values, from
// an offset on, oldest first.
func (c *Client) Search(ctx context.Context, metadata map[string]any, offset int) ([]Thread, error) {
	var found []wireThread
	err := c.ask(ctx, http.MethodPost, map[string]any{
		"metadata": metadata, "limit": PageSize, "offset": offset, "sort_by": "created_at", "sort_order": "asc",
		"select": []string{"thread_id", "status", "metadata"},
	}, &found, threads, "search")
	if err != nil {
		return nil, err
	}
	if len(found) > PageSize {
		return nil, &Error{Fact: ErrNonsense, Status: http.StatusOK, Said: fmt.Sprintf("%d threads where %d were asked for", len(found), PageSize)}
	}
	page := make([]Thread, len(found))
	for i, w := range found {
		if page[i], err = w.thread(); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// State is the newest state of a thread: the messages in it.
type State struct {
	Messages []Message
	// Checkpoint names this state; empty: the thread has none.
	Checkpoint string
}

// State returns the newest state of a thread. One that has no messages has none here.
func (c *Client) State(ctx context.Context, id uuid.UUID) (State, error) {
	var answer struct {
		Values     json.RawMessage `json:"values"`
		Checkpoint *struct {
			ThreadID     string `json:"thread_id"`
			CheckpointID string `json:"checkpoint_id"`
		} `json:"checkpoint"`
	}
	if err := c.ask(ctx, http.MethodGet, nil, &answer, threads, id.String(), "state"); err != nil {
		return State{}, err
	}
	var values struct {
		Messages []json.RawMessage `json:"messages"`
	}
	// Values of another graph may be a list, or messages something else: then there are none.
	_ = json.Unmarshal(answer.Values, &values)
	s := State{Messages: readMessages(values.Messages)}
	if answer.Checkpoint != nil {
		if answer.Checkpoint.ThreadID != "" && answer.Checkpoint.ThreadID != id.String() {
			return State{}, &Error{Fact: ErrNonsense, Status: http.StatusOK, Said: "the state is that of another thread"}
		}
		s.Checkpoint = plain(answer.Checkpoint.CheckpointID)
	}
	return s, nil
}

// Append adds messages to the state of a thread, as if a node of its graph had given
// them; those whose ids it has take the places of the ones before. With an empty node the
// server chooses the last that worked.
func (c *Client) Append(ctx context.Context, id uuid.UUID, node string, messages []Message) error {
	return c.update(ctx, id, node, messages)
}

// Replace is [Client.Append] with all messages that are there taken away before.
func (c *Client) Replace(ctx context.Context, id uuid.UUID, node string, messages []Message) error {
	// The id is that of LangGraph's REMOVE_ALL_MESSAGES.
	return c.update(ctx, id, node, append([]Message{{Type: "remove", ID: "__remove_all__"}}, messages...))
}

func (c *Client) update(ctx context.Context, id uuid.UUID, node string, messages []Message) error {
	in := map[string]any{"values": map[string]any{"messages": messages}}
	if node != "" {
		in["as_node"] = node
	}
	return c.ask(ctx, http.MethodPost, in, nil, threads, id.String(), "state")
}

// Graphs are the names of the graphs that the server has, as far as it tells.
func (c *Client) Graphs(ctx context.Context) ([]string, error) {
	var found []struct {
		GraphID string `json:"graph_id"`
	}
	if err := c.ask(ctx, http.MethodPost, map[string]any{"limit": PageSize}, &found, "assistants", "search"); err != nil {
		return nil, err
	}
	var names []string
	seen := map[string]bool{}
	for _, a := range found {
		if name := plain(a.GraphID); name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, nil
}

// Check reports whether something at the place answers as such a server does.
func (c *Client) Check(ctx context.Context) error {
	var answer struct {
		OK bool `json:"ok"`
	}
	if err := c.ask(ctx, http.MethodGet, nil, &answer, "ok"); err != nil {
		return err
	}
	if !answer.OK {
		return &Error{Fact: ErrNonsense, Status: http.StatusOK, Said: "GET /ok does not say that it is"}
	}
	return nil
}
