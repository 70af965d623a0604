package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

// TestHistory: whatever a conversation does, the text is that of its messages
// one after the other; earlier results stay as they were; and a message
// that was sent before is not encoded again.
func TestHistory(t *testing.T) {
	t.Parallel()
	naive := func(m llm.Message) ([]byte, error) {
		if m.Blocks[0].Text == "" {
			return nil, nil
		}
		return json.Marshal(m)
	}
	rapid.Check(t, func(t *rapid.T) {
		var (
			h        History
			talk     []llm.Message
			returned [][]byte
			copies   []string
		)
		for range rapid.IntRange(1, 8).Draw(t, "calls") {
			talk = slices.Clone(talk[:rapid.IntRange(0, len(talk)).Draw(t, "kept")])
			before := len(h.sent)
			again := min(before, len(talk))
			for range rapid.IntRange(0, 3).Draw(t, "new") {
				talk = append(talk, llm.Text(llm.User, rapid.SampledFrom([]string{"", "a", `"quoted"`}).Draw(t, "text")))
			}
			encoded := 0
			got, ends, err := h.Encode(talk, nil, func(m llm.Message) ([]byte, error) {
				encoded++
				return naive(m)
			})
			if err != nil {
				t.Fatal(err)
			}
			if encoded != len(talk)-again {
				t.Errorf("%d of %d messages encoded, %d are known", encoded, len(talk), again)
			}
			var parts []string
			for i, m := range talk {
				if part, _ := naive(m); len(part) > 0 {
					parts = append(parts, string(part))
				}
				if so := strings.Join(parts, ","); len(ends) != len(talk) || ends[i] != len(so) {
					t.Fatalf("the text of message %d ends at %v, not at %d", i, ends, len(so))
				}
			}
			if want := strings.Join(parts, ","); string(got) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			returned, copies = append(returned, got), append(copies, string(got))
			for i, text := range returned {
				if string(text) != copies[i] {
					t.Errorf("a text that is in use was changed: %s, was %s", text, copies[i])
				}
			}
		}
	})
}

func TestHistoryKeepsNothingOfAFailure(t *testing.T) {
	t.Parallel()
	var h History
	talk := []llm.Message{llm.Text(llm.User, "a"), llm.Text(llm.User, "b")}
	broken := errors.New("broken")
	if _, _, err := h.Encode(talk, nil, func(m llm.Message) ([]byte, error) {
		if m.Blocks[0].Text == "b" {
			return nil, broken
		}
		return []byte("1"), nil
	}); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	got, _, err := h.Encode(talk, nil, func(llm.Message) ([]byte, error) { return []byte("2"), nil })
	if err != nil || string(got) != "1,2" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestPrepend(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		body     string
		members  string
		elements []string
		want     string // empty: an error
	}{
		{`{"model":"m","messages":[]}`, "", []string{"1,2"}, `{"model":"m","messages":[1,2]}`},
		{`{"model":"m","messages":[3],"x":"\"messages\":["}`, "", []string{"1", "", "2"}, `{"model":"m","messages":[1,2,3],"x":"\"messages\":["}`},
		{`{"model":"\"messages\":[","messages":[3]}`, "", []string{"1"}, `{"model":"\"messages\":[","messages":[1,3]}`},
		{`{"messages":[3]}`, "", []string{"", ""}, `{"messages":[3]}`},
		{`{"messages":[3]}`, `"a":[1],`, nil, `{"a":[1],"messages":[3]}`},
		{`{"model":"m","messages":[]}`, `"a":[1],"b":2,`, []string{"1"}, `{"model":"m","a":[1],"b":2,"messages":[1]}`},
		{`{"messages":null}`, "", []string{"1"}, ""},
		{`{"messages":null}`, `"a":[1],`, nil, ""},
	} {
		req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		var elements [][][]byte
		for _, e := range test.elements {
			elements = append(elements, [][]byte{[]byte(e[:len(e)/2]), []byte(e[len(e)/2:])})
		}
		if err := Prepend(req, Messages, []byte(test.members), elements...); (err != nil) != (test.want == "") {
			t.Errorf("%s: %v", test.body, err)
		} else if err != nil {
			continue
		}
		again, err := req.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []io.Reader{req.Body, again} {
			got, err := io.ReadAll(r)
			if err != nil || string(got) != test.want || req.ContentLength != int64(len(got)) {
				t.Errorf("%s: got %s (%d), %v", test.body, got, req.ContentLength, err)
			}
		}
	}
}

// FuzzPrepend: a body that is JSON stays JSON.
func FuzzPrepend(f *testing.F) {
	f.Add(`{"messages":[1]}`)
	f.Add(`{"model":"\"messages\":[]"}`)
	f.Fuzz(func(t *testing.T, model string) {
		body, err := json.Marshal(struct {
			Model    string `json:"model"`
			Messages []int  `json:"messages"`
		}{model, []int{3}})
		if err != nil {
			t.Fatal(err)
		}
		req := &http.Request{Body: io.NopCloser(bytes.NewReader(body))}
		if err := Prepend(req, Messages, []byte(`"a":1,`), [][]byte{[]byte("1,2")}); err != nil {
			t.Fatal(err)
		}
		var got struct{ Messages []int }
		if err := json.NewDecoder(req.Body).Decode(&got); err != nil || !slices.Equal(got.Messages, []int{1, 2, 3}) {
			t.Errorf("got %v, %v", got, err)
		}
	})
}
