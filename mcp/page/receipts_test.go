package page

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/stop"
)

// TestReceiptWords holds that the page has words for each way in which a thread was stopped.
func TestReceiptWords(t *testing.T) {
	t.Parallel()
	source, err := files.ReadFile("static/actions.js")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(source), "const ways = {")
	words, _, _ := strings.Cut(after, "};")
	how, _ := reflect.TypeFor[stop.Receipt]().FieldByName("How")
	for way := range strings.FieldsFuncSeq(how.Tag.Get("jsonschema"), func(r rune) bool { return strings.ContainsRune(" ,;:", r) }) {
		if strings.Contains(way, "_") && !strings.Contains(words, way+": ") {
			t.Errorf("no words for %s", way)
		}
	}
}
