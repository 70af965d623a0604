package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
)

func calling(ids ...string) llm.Message {
	m := llm.Message{Role: llm.Assistant}
	for _, id := range ids {
		m.Blocks = append(m.Blocks, llm.Block{Type: llm.ToolUseBlock, ToolCallID: id})
	}
	return m
}

func answering(ids ...string) llm.Message {
	m := llm.Message{Role: llm.User}
	for _, id := range ids {
		m.Blocks = append(m.Blocks, llm.Block{Type: llm.ToolResultBlock, ToolCallID: id})
	}
	return m
}

// idsOf are the ids of calls and results as a history sends them, in their order.
func idsOf(t *testing.T, h *History, messages []llm.Message, takes func(string) bool) []string {
	t.Helper()
	text, _, err := h.Encode(messages, takes, func(m llm.Message) ([]byte, error) {
		var ids []string
		for _, b := range m.Blocks {
			if b.ToolCallID != "" {
				ids = append(ids, fmt.Sprintf("%q", b.ToolCallID))
			}
		}
		return []byte(strings.Join(ids, ",")), nil
	})
	var all []string
	if err := errors.Join(err, json.Unmarshal([]byte("["+string(text)+"]"), &all)); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCallsAreLookedAtOnce: a conversation that grows costs no more with each request.
func TestCallsAreLookedAtOnce(t *testing.T) {
	t.Parallel()
	asked := 0
	takes := func(id string) bool { asked++; return PlainID(id) }
	var (
		h        History
		messages []llm.Message
	)
	for i := range 50 {
		messages = append(messages, calling(fmt.Sprint(i), "functions.x:0"), answering(fmt.Sprint(i), "functions.x:0"))
		idsOf(t, &h, messages, takes)
	}
	if asked != 100 {
		t.Errorf("%d ids of 100 calls were looked at", asked)
	}
}

// TestShortIDs: what is sent in place of an id every vendor takes, also of many.
func TestShortIDs(t *testing.T) {
	t.Parallel()
	var messages []llm.Message
	for range 200 {
		messages = append(messages, calling("call_1", "abcdefgh_", ""), answering("call_1", "abcdefgh_", ""))
	}
	ids := idsOf(t, new(History), messages, ShortID)
	different := map[string]bool{}
	for _, id := range ids {
		if different[id] = true; !ShortID(id) {
			t.Errorf("%q", id)
		}
	}
	if len(ids) != 1200 || len(different) != 600 {
		t.Errorf("%d ids, %d of them different", len(ids), len(different))
	}
}

// TestCallIDs: ids that a vendor refuses, and those that come twice, are replaced alike
// at a call and at its result; the others stay.
func TestCallIDs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 41)
	for name, c := range map[string]struct {
		messages []llm.Message
		want     []string // "*": another id; "*n": the same as the n-th
	}{
		"legal":            {[]llm.Message{llm.Text(llm.User, "hi"), calling("a-1", "B_2"), answering("a-1", "B_2")}, []string{"a-1", "B_2", "a-1", "B_2"}},
		"another form":     {[]llm.Message{calling("functions.x:0"), answering("functions.x:0")}, []string{"*", "*0"}},
		"too long":         {[]llm.Message{calling(long, "a"), answering(long, "a")}, []string{"*", "a", "*0", "a"}},
		"again":            {[]llm.Message{calling("a"), answering("a"), calling("a"), answering("a")}, []string{"a", "a", "*", "*2"}},
		"twice in one":     {[]llm.Message{calling("a", "a"), answering("a", "a")}, []string{"a", "*", "a", "*1"}},
		"without a result": {[]llm.Message{calling("a"), llm.Text(llm.User, "no"), calling("a"), answering("a")}, []string{"a", "*", "*1"}},
		"a result alone":   {[]llm.Message{answering("a")}, []string{"a"}},
	} {
		legal := func(id string) bool { return PlainID(id) && len(id) <= 40 }
		before := fmt.Sprint(c.messages)
		got := idsOf(t, new(History), c.messages, legal)
		if fmt.Sprint(c.messages) != before {
			t.Errorf("%s: the messages are changed", name)
		}
		used := map[string]bool{}
		for i, want := range c.want {
			switch same, known := strings.CutPrefix(want, "*"); {
			case i >= len(got):
			case !known:
				if got[i] != want {
					t.Errorf("%s: %q at %d, want %q", name, got[i], i, want)
				}
			case same == "":
				if used[got[i]] || !legal(got[i]) {
					t.Errorf("%s: %q at %d", name, got[i], i)
				}
			case got[i] != got[same[0]-'0']:
				t.Errorf("%s: %q at %d, want that at %s", name, got[i], i, same)
			}
			if i < len(got) {
				used[got[i]] = true
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", name, got)
		}
		for n := range c.messages { // messages are sent alike again, by their sender and by another
			h := new(History)
			had := idsOf(t, h, c.messages[:n], legal)
			if again := idsOf(t, h, c.messages, legal); !slices.Equal(had, got[:len(had)]) || !slices.Equal(again, got) {
				t.Errorf("%s: %q, and before that %q; then %q", name, got, had, again)
			}
			if cut := idsOf(t, h, c.messages[:n], legal); !slices.Equal(cut, had) {
				t.Errorf("%s: %q, and cut off %q", name, had, cut)
			}
			if again := idsOf(t, h, c.messages, legal); !slices.Equal(again, got) {
				t.Errorf("%s: %q, and after a cut %q", name, got, again)
			}
		}
	}
}
