package server

import (
	"encoding/json"
	"testing"
)

// TestWithReach: a next step that names what is no tool of the server says the call that does
// it, with the thread where it says this one. Every other answer stays as it is.
func TestWithReach(t *testing.T) {
	t.Parallel()
	elsewhere := Elsewhere{
		Names: []string{"wait_threads", "get_status"},
		Call:  func(name string, args json.RawMessage) string { return "do " + name + " " + string(args) },
	}
	for _, tt := range []struct {
		name, answer, want string
		offersAll          bool
	}{
		{
			name:   "this thread",
			answer: `{"success":true,"thread_id":"a-1","next":"wait_threads with this thread_id; get_status to look"}`,
			want:   `{"success":true,"thread_id":"a-1","next":"wait_threads with this thread_id; get_status to look; wait_threads is called as do wait_threads {\"thread_id\":\"a-1\"}"}`,
		},
		{
			name:   "hint",
			answer: `{"success":false,"error":"no","hint":"get_status has it"}`,
			want:   `{"success":false,"error":"no","hint":"get_status has it; get_status is called as do get_status {}"}`,
		},
		{name: "part of a word", answer: `{"next":"await_threads, my_get_status"}`},
		{name: "other member", answer: `{"result":"wait_threads with this thread_id","next":"rye_search"}`},
		{name: "no text", answer: `{"next":{"wait_threads":1}}`},
		{name: "no object", answer: `["wait_threads"]`},
		{name: "all are tools", answer: `{"next":"wait_threads with this thread_id"}`, offersAll: true},
	} {
		s := &Server{elsewhere: elsewhere}
		if tt.offersAll {
			s.elsewhere = Elsewhere{}
		}
		if tt.want == "" {
			tt.want = tt.answer
		}
		if got := string(s.withReach([]byte(tt.answer))); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
