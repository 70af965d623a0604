package threads

import (
	"slices"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func TestNearIDs(t *testing.T) {
	t.Parallel()
	ids := []thread.ID{"review/security-1700000000", "hang-1700000001", "hang-1700000000", "é-1"}
	for given, want := range map[thread.ID][]thread.ID{
		"hnag":             {"hang-1700000001", "hang-1700000000"},
		"hang-1700000009":  {"hang-1700000001", "hang-1700000000"},
		"SECURITY":         {"review/security-1700000000"},
		"revieww/securi":   {"review/security-1700000000"},
		"nothing like any": nil,
	} {
		if got := nearIDs(given, ids); !slices.Equal(got, want) {
			t.Errorf("near %s: %v, want %v", given, got, want)
		}
	}
	if got := nearIDs("hang", slices.Repeat(ids[1:2], handful+1)); len(got) != handful {
		t.Errorf("%d ids, want %d", len(got), handful)
	}
}
