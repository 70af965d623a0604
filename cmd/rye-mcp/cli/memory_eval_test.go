package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/runtime/rag/embed/embedtest"
	"github.com/rye-mcp/rye-mcp/runtime/rag/eval"
)

// TestMemoryEval: questions are asked by words, and with an endpoint by vectors and both;
// nothing of the user's is made or changed.
func TestMemoryEval(t *testing.T) {
	t.Parallel()
	set := eval.Planted(eval.Planting{Seed: 1, Facts: 4, Distractors: 12, Unanswerable: 2, Paraphrased: 0.5})
	for name, tt := range map[string]struct {
		mode     embedtest.Mode
		settings string // with %s for the endpoint
		words    bool
		rows     int
		says     string // why there are no vectors, or the error
	}{
		"with an endpoint": {settings: "enabled: true\nembedding: {base_url: '%s', model: test-embed, api_key_env: KEY, price: 1000}\n", rows: 3},
		"words":            {settings: "enabled: true\nembedding: {base_url: '%s', model: test-embed, api_key_env: KEY, price: 1000}\n", words: true, rows: 1, says: "--words"},
		"off":              {settings: "enabled: false\nembedding: {base_url: '%s', model: test-embed, api_key_env: KEY, price: 1000}\n", rows: 1, says: "memory is off"},
		"no variable":      {settings: "enabled: true\nembedding: {base_url: '%s', model: test-embed, api_key_env: NOT_SET, price: 1000}\n", rows: 1, says: "NOT_SET"},
		"another model":    {mode: embedtest.OtherModel, settings: "enabled: true\nembedding: {base_url: '%s', model: test-embed, api_key_env: KEY, price: 1000}\n", says: "changed its model"},
		"no key":           {mode: embedtest.Unauthorized, settings: "enabled: true\nembedding: {base_url: '%s', model: test-embed, api_key_env: KEY, price: 1000}\n", says: "401"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := embedtest.New(t, tt.mode, tt.mode, tt.mode, tt.mode)
			p := remembering(t, fmt.Sprintf(tt.settings, server.URL))
			before := filesOf(t, p.path, p.state.finder.User)
			told, err := p.evaluate(t.Context(), testSystem(p.state.finder.User, nil), set, tt.words)
			if tt.rows == 0 {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("error %v, want %s", err, tt.says)
				}
			} else if err != nil || len(told.Rows) != tt.rows || !strings.Contains(told.WordsAlone, tt.says) || (told.Model != "") != (tt.rows == 3) {
				t.Errorf("%+v, %v", told, err)
			}
			if tt.rows == 3 && (told.Spend == 0 || told.EmbedTokens == 0 || told.Rows[1].By != rag.ByVectors) {
				t.Errorf("%+v", told)
			}
			if after := filesOf(t, p.path, p.state.finder.User); len(after) != len(before) {
				t.Errorf("there is %q, and was %q", after, before)
			}
		})
	}
}
