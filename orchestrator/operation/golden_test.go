package operation

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/action/itemtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

var update = flag.Bool("update", false, "rewrite the parameters and the item of rye/agent/threads/orchestrator")

// Models in threads are told of the operations what the table says.
func TestOrchestratorMatchesTable(t *testing.T) {
	t.Parallel()
	derived, err := NewTable(All().Entries()...).Orchestrator()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("parameters.json", append(bytes.Clone(derived.Schema), '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if given, err := All().Orchestrator(); err != nil || !bytes.Equal(bytes.TrimSpace(given.Schema), derived.Schema) {
		t.Errorf("parameters.json differs from the table, %v; go test . -update writes it anew", err)
	}
	itemtest.Check(t, derived, *update)
	if err := tool.Validate(derived.Schema, []byte(`{"operation":"wait_threads","thread_ids":["a"],"id":"another name"}`)); err != nil {
		t.Errorf("parameters are refused: %v", err)
	}
}

// An operation has all its texts, and every file of texts is of an operation.
func TestTexts(t *testing.T) {
	t.Parallel()
	files, err := texts.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(All().Entries()) {
		t.Errorf("%d files of texts for %d operations", len(files), len(All().Entries()))
	}
	for _, e := range All().Entries() {
		if e.Title == "" || len(e.Doc) < 40 {
			t.Errorf("%s: title %q, %d bytes of description", e.Name, e.Title, len(e.Doc))
		}
	}
}
