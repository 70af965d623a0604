// Package langgraphtest is a LangGraph server for tests: the part of its API that is used
// here, as the development server of @langchain/langgraph-cli 2.0.0 answers, with faults
// on demand.
package langgraphtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
)

// Thread is a thread of the server.
type Thread struct {
	ID       string
	Metadata map[string]any
	Messages []map[string]any
	States   int // how often the state was written
}

// Request is one that has come.
type Request struct {
	Method, Path, Key string
	Body              []byte
}

// Server is such a server. Its fields are read and written under Lock, or through the
// methods.
type Server struct {
	*httptest.Server
	// Graphs are those that there are; a state of another graph's thread is a 404.
	Graphs []string
	// Nodes are those that a state can be written as.
	Nodes []string

	mu       sync.Mutex
	threads  map[string]*Thread
	order    []string
	requests []Request
	fault    func(http.ResponseWriter, *http.Request) bool
}

// New starts a server with the graph rye and its node rye, which ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := Open()
	t.Cleanup(s.Close)
	return s
}

// Open is New for callers that close the server.
func Open() *Server {
	s := &Server{Graphs: []string{"rye"}, Nodes: []string{"rye"}, threads: map[string]*Thread{}}
	s.Server = httptest.NewServer(s)
	return s
}

// Setting is the URL of the server as it is written in settings.
func (s *Server) Setting() string { return "langgraph+" + s.URL }

// Fault has each request come to a function first, which reports whether it has answered;
// nil: none.
func (s *Server) Fault(f func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Requests are those that have come, as "METHOD path".
func (s *Server) Requests() (all []Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Threads are those of the server, oldest first.
func (s *Server) Threads() (all []Thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.order {
		if t, is := s.threads[id]; is {
			all = append(all, Thread{t.ID, copyOf(t.Metadata), slices.Clone(t.Messages), t.States})
		}
	}
	return all
}

// Put makes a thread, or replaces it.
func (s *Server) Put(t Thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(&t)
}

func (s *Server) put(t *Thread) {
	if t.Metadata == nil {
		t.Metadata = map[string]any{}
	}
	if s.threads[t.ID] == nil {
		s.order = append(s.order, t.ID)
	}
	s.threads[t.ID] = t
}

func copyOf(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, Request{r.Method, r.URL.Path, r.Header.Get("X-Api-Key"), body})
	fault := s.fault
	s.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	status, out := s.answer(r.Method, strings.Split(strings.Trim(r.URL.Path, "/"), "/"), body)
	if text, is := out.(string); is {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if out != nil {
		_ = json.NewEncoder(w).Encode(out)
	}
}

func (s *Server) answer(method string, path []string, body []byte) (int, any) {
	var in struct {
		ThreadID string         `json:"thread_id"`
		Metadata map[string]any `json:"metadata"`
		IfExists string         `json:"if_exists"`
		Limit    int            `json:"limit"`
		Offset   int            `json:"offset"`
		AsNode   string         `json:"as_node"`
		Values   struct {
			Messages []map[string]any `json:"messages"`
		} `json:"values"`
	}
	if len(body) > 0 && json.Unmarshal(body, &in) != nil {
		return 400, "Malformed JSON in request body"
	}
	switch strings.Join(path, "/") {
	case "ok":
		return 200, map[string]any{"ok": true}
	case "assistants/search":
		var all []map[string]any
		for _, g := range s.Graphs {
			all = append(all, map[string]any{"assistant_id": uuid.NewString(), "graph_id": g, "name": g})
		}
		return 200, all
	case "threads":
		return s.create(in.ThreadID, in.IfExists, in.Metadata)
	case "threads/search":
		return 200, s.search(in.Metadata, in.Offset, in.Limit)
	}
	if len(path) < 2 || path[0] != "threads" {
		return 404, "404 Not Found"
	}
	if _, err := uuid.Parse(path[1]); err != nil {
		return 400, map[string]any{"success": false, "error": map[string]any{"issues": []any{map[string]any{"path": []any{"thread_id"}, "message": "Invalid uuid"}}}}
	}
	t := s.threads[path[1]]
	if t == nil {
		if len(path) == 3 && path[2] == "copy" {
			return 409, "Thread not found"
		}
		return 404, fmt.Sprintf("Thread with ID %s not found", path[1])
	}
	switch method + " " + strings.Join(path[2:], "/") {
	case "GET ":
		return 200, shown(t)
	case "PATCH ":
		for k, v := range in.Metadata {
			t.Metadata[k] = v
		}
		return 200, shown(t)
	case "DELETE ":
		delete(s.threads, t.ID)
		return 204, nil
	case "POST copy":
		c := &Thread{ID: uuid.NewString(), Metadata: copyOf(t.Metadata), Messages: slices.Clone(t.Messages), States: t.States}
		c.Metadata["thread_id"] = c.ID
		s.put(c)
		return 200, shown(c)
	case "GET state", "POST state":
		return s.state(t, method == "POST", in.AsNode, in.Values.Messages)
	}
	return 404, "404 Not Found"
}

func shown(t *Thread) map[string]any {
	return map[string]any{"thread_id": t.ID, "status": "idle", "metadata": t.Metadata, "config": map[string]any{}}
}

func (s *Server) create(id, exists string, metadata map[string]any) (int, any) {
	if id == "" {
		id = uuid.NewString()
	}
	if t := s.threads[id]; t != nil {
		if exists != "do_nothing" {
			return 409, "Thread already exists"
		}
		return 200, shown(t)
	}
	t := &Thread{ID: id, Metadata: copyOf(metadata)}
	s.put(t)
	return 200, shown(t)
}

func (s *Server) search(metadata map[string]any, offset, limit int) []any {
	found := []any{}
	for _, id := range s.order {
		t := s.threads[id]
		if t == nil || !contains(t.Metadata, metadata) {
			continue
		}
		if offset--; offset >= 0 {
			continue
		}
		if len(found) == limit {
			break
		}
		found = append(found, shown(t))
	}
	return found
}

func contains(have, want map[string]any) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

func (s *Server) state(t *Thread, write bool, node string, messages []map[string]any) (int, any) {
	graph, _ := t.Metadata["graph_id"].(string)
	switch {
	case graph == "" && write:
		return 400, fmt.Sprintf("Thread %s has no graph ID", t.ID)
	case graph != "" && !slices.Contains(s.Graphs, graph):
		return 404, fmt.Sprintf("Graph %q not found", graph)
	case write && node != "" && !slices.Contains(s.Nodes, node):
		return 500, "Internal Server Error"
	}
	checkpoint := map[string]any{"thread_id": t.ID, "checkpoint_ns": "", "checkpoint_id": fmt.Sprintf("%d", t.States)}
	if !write {
		values := map[string]any{}
		if t.States > 0 {
			values["messages"] = t.Messages
		}
		return 200, map[string]any{"values": values, "next": []any{}, "tasks": []any{}, "checkpoint": checkpoint}
	}
	t.States++
	for _, m := range messages {
		t.Messages = reduce(t.Messages, m)
	}
	return 200, map[string]any{"checkpoint": checkpoint}
}

// reduce is what the reducer of messages does: a message with a known id takes the place
// of that one.
func reduce(have []map[string]any, m map[string]any) []map[string]any {
	if m["type"] == "remove" {
		if m["id"] == "__remove_all__" {
			return nil
		}
		return slices.DeleteFunc(have, func(o map[string]any) bool { return o["id"] == m["id"] })
	}
	for i, o := range have {
		if o["id"] == m["id"] {
			have = slices.Clone(have)
			have[i] = m
			return have
		}
	}
	return append(slices.Clone(have), m)
}
