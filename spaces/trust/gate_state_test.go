package trust_test

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// TestAttackForgedRendering: knowledge about threads, or any other item, carries a signature of somebody else's state key, or of the user's own for another kind or id. The state key counts for the knowledge below agent/threads that it signed and for nothing else.
func TestAttackForgedRendering(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	state, forger, fleet := newKey(t, 7), newKey(t, 8), newKey(t, 9)
	settings := trust.Settings{Mode: trust.Strict}
	gate := h.gate(&settings)
	gate.State = func() ([]*sign.PublicKey, error) {
		return []*sign.PublicKey{state.Public(), fleet.Public()}, nil
	}
	const rendering = "agent/threads/work/work-1"
	for name, tt := range map[string]struct {
		key    *sign.Key
		signed sign.Name
		kind   item.Kind
		id     string
		good   bool
	}{
		"a rendering":             {state, sign.Name{Kind: "knowledge", ID: rendering}, item.Knowledge, rendering, true},
		"of the fleet's key":      {fleet, sign.Name{Kind: "knowledge", ID: rendering}, item.Knowledge, rendering, true},
		"of another key":          {forger, sign.Name{Kind: "knowledge", ID: rendering}, item.Knowledge, rendering, false},
		"of another thread":       {state, sign.Name{Kind: "knowledge", ID: rendering + "2"}, item.Knowledge, rendering, false},
		"knowledge beside them":   {state, sign.Name{Kind: "knowledge", ID: "agent/threadsome"}, item.Knowledge, "agent/threadsome", false},
		"a directive":             {state, sign.Name{Kind: "directive", ID: rendering}, item.Directive, rendering, false},
		"a directive by its text": {state, sign.Name{Kind: "knowledge", ID: rendering}, item.Directive, rendering, false},
		"a tool of the fleet's":   {fleet, sign.Name{Kind: "tool", ID: rendering + ".md"}, item.Tool, rendering, false},
		"a tool":                  {state, sign.Name{Kind: "tool", ID: rendering + ".md"}, item.Tool, rendering, false},
	} {
		text, err := sign.Attach([]byte("```yaml\nname: work-1\n```\nDone.\n"), ".md", tt.signed, tt.key, noon)
		if err != nil {
			t.Fatal(err)
		}
		subject := trust.Subject{Kind: tt.kind, ID: tt.id, Space: item.Project, Path: "/p/.ai/x.md", Ext: ".md", Content: text}
		if _, err := gate.Check(subject); (err == nil) != tt.good {
			t.Errorf("%s: %v", name, err)
		}
		if v, err := gate.Verify(subject); err != nil || v.Status.Good() != tt.good {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}
