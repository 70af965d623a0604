package transcript

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/alloctest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestAttackMemoryOfTranscripts: somebody's transcript has lines of megabytes that nest, repeat or are one long text, so that looking at it costs far more than its size.
// The memory that each way of reading takes stays within a fixed multiple of the size, whatever its shape.
func TestAttackMemoryOfTranscripts(t *testing.T) { //nolint:paralleltest // it measures what is allocated
	longtest.Mark(t)
	path := newPath(t)
	pattern, err := NewPattern("needle", false)
	must(t, err)
	inputs := map[string]string{}
	for name, value := range alloctest.JSON(alloctest.Size(8 << 20)) {
		value = strings.ReplaceAll(value, "\n", " ")
		for _, payload := range []string{`{"blocks":` + value + `}`, `{"outcome":{"result":"x","outputs":` + value + `}}`, `{"result_of":` + value + `}`} {
			line := `{"timestamp":"2026-03-01T09:30:00.250Z","thread_id":"a-1","seq":1,"event_type":"` + string(thread.EventCognitionOut) + `","payload":` + payload + "}\n"
			inputs[name+payload[:12]] = line + strings.Replace(strings.Replace(line, string(thread.EventCognitionOut), string(thread.EventThreadCompleted), 1), `"seq":1`, `"seq":2`, 1)
		}
	}
	inputs["tiny lines"] = alloctest.Fill(alloctest.Size(8<<20), "{}\n")
	inputs["empty lines"] = alloctest.Fill(alloctest.Size(8<<20), "\n")
	readers := map[string]func(){
		"verify": func() { _, _ = Verify(records.File(path), nil, nil) }, "outcome": func() { _, _, _ = LastOutcome(records.File(path)) },
		"messages": func() { _, _ = messages(path) }, "render": func() { _ = Render(records.File(path), &bytes.Buffer{}) },
		"in flight": func() { _, _ = LastInFlight(records.File(path)) }, "last": func() { _, _ = Last(records.File(path)) },
		"events": func() { _, _ = LastEvents(records.File(path), 10) }, "search": func() { _, _ = Search(t.Context(), records.File(path), pattern, 5) },
		"page": func() { _, _ = Tail(records.File(path), TailOptions{Text: true, Last: 5}) },
	}
	for how, read := range readers {
		alloctest.Linear(t, 500, inputs, func(name string, input []byte) {
			if name == "" {
				t.Fatal(how)
			}
			writeFile(t, path, input)
			read()
		})
	}
}
