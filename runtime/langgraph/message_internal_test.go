package langgraph

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestNewestMessages: of a state with more messages than are read, the newest are.
func TestNewestMessages(t *testing.T) {
	t.Parallel()
	for _, n := range []int{maxMessages, maxMessages + 2} {
		raw := make([]json.RawMessage, n)
		for i := range raw {
			raw[i] = json.RawMessage(fmt.Sprintf(`{"type":"human","id":"%d","content":"x"}`, i))
		}
		got := readMessages(raw)
		if len(got) != maxMessages || got[0].ID != fmt.Sprint(n-maxMessages) || got[len(got)-1].ID != fmt.Sprint(n-1) {
			t.Errorf("of %d: %d, from %s to %s", n, len(got), got[0].ID, got[len(got)-1].ID)
		}
	}
}
