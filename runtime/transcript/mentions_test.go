package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
)

// TestMentions finds words wherever they stand, also where two reads meet.
func TestMentions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	for at := range []int{0, 1, 2, 3} {
		before := []int{0, mentionsBytes - 3, 2*mentionsBytes - 1030, 3 * mentionsBytes}[at]
		if err := os.WriteFile(path, []byte(strings.Repeat("x", before)+"abcdef"), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := Mentions(records.File(path), []string{"abcdef", "nowhere"})
		if err != nil || !found["abcdef"] || found["nowhere"] {
			t.Errorf("behind %d bytes: %v, %v", before, found, err)
		}
	}
}
