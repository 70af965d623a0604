package provider

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// A model's own word goes before its provider's; without any it can see.
func TestVision(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, c := range []struct {
		provider, model *bool
		want            bool
	}{
		{nil, nil, true}, {&no, nil, false}, {&yes, nil, true}, {nil, &no, false}, {&no, &yes, true}, {&yes, &no, false},
	} {
		p := config.Provider{Vision: c.provider, Models: map[string]config.ModelOverride{"m": {Vision: c.model}}}
		if got := canSee(p, "m"); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
