package item_test

import (
	"encoding/json"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Models read declared outputs as they read declared inputs.
func TestOutputInJSON(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal([]item.Output{{Name: "n", Type: item.TypeInteger, Required: true, Description: "How many"}, {Name: "any"}})
	const want = `[{"name":"n","type":"integer","required":true,"description":"How many"},{"name":"any","required":false}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}
