package main_test

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/confine/confinetest"
)

// TestOrdinaryUserIsConfined: the program of a user without rights, which hides its memory from
// other processes of that user, confines the commands of tools.
func TestOrdinaryUserIsConfined(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	g := newGuest(t)
	if !confinetest.Possible(t.Context(), g.as) {
		t.Skip("this system confines no commands of ordinary users")
	}
	if said := g.run("doctor"); !strings.Contains(said, "commands of tools are confined\n") {
		t.Errorf("doctor says:\n%s", said)
	}
}
