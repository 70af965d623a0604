package mcpclient

import (
	"encoding/json"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// TestTextThatRepeats: a text is left out where it says what the structured content says, and
// stays where it says anything else, JSON or not.
func TestTextThatRepeats(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		structured, text string
		left             bool
	}{
		{`{"n":1,"list":[1,2]}`, "{\n \"list\": [1, 2],\n \"n\": 1\n}", true},
		{`[1,2]`, `[1, 2]`, true},
		{`{"content":"words","more":[1]}`, `words`, true},
		{`{"content":"12"}`, `12`, true},
		{`{"id":12345678901234567890}`, `{"id": 12345678901234567890}`, true},
		{`{"id":12345678901234567890}`, `{"id":12345678901234567891}`, false},
		{`{"rows":[1,2]}`, `{"warning":"only the first 10 of 300 rows are shown"}`, false},
		{`{"rows":[1,2]}`, `12`, false},
		{`{"rows":[1,2]}`, `["x"]`, false},
		{`{"rows":[1,2]}`, `null`, false},
		{`{"rows":[1,2]}`, `"really a sentence"`, false},
		{`{"rows":[1,2]}`, `{"rows":[1,2]} and more`, false},
		{`{"rows":[1,2]}`, `only the first 10 rows`, false},
		{`{"rows":[1,2]}`, ``, false},
	} {
		r, err := resultOf(&mcp.CallToolResult{
			Content:              []mcp.Content{mcp.TextContent{Type: "text", Text: tt.text}},
			RawStructuredContent: json.RawMessage(tt.structured),
		})
		want := tt.text
		if tt.left {
			want = ""
		}
		if err != nil || r.Text != want || string(r.Structured) != tt.structured {
			t.Errorf("%s beside %s: %q, %v", tt.text, tt.structured, r.Text, err)
		}
	}
}
