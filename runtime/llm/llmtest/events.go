package llmtest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
	"github.com/rye-mcp/rye-mcp/spaces/alloctest"
)

// HugeEvents has a vendor send events of megabytes. Begin is what an event begins with
// whose value is one of the shapes, and end what follows it. It measures what is
// allocated, so it does not run beside others.
func HugeEvents(t *testing.T, newClient func(wire.Config) llm.Client, begin, end string) {
	t.Helper()
	const factor = 60
	size := alloctest.Size(4 << 20)
	for name, value := range alloctest.JSON(size) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, begin)
			_, _ = io.WriteString(w, strings.ReplaceAll(value, "\n", " "))
			_, _ = fmt.Fprintf(w, "%s\n\n", end)
		}))
		transport := &http.Transport{}
		client := newClient(wire.Config{BaseURL: server.URL, HTTPClient: &http.Client{Transport: transport}})
		used := alloctest.Bytes(func() {
			if _, err := client.Stream(t.Context(), llm.Request{Messages: []llm.Message{llm.Text(llm.User, "hi")}}, nil); err == nil {
				t.Errorf("%s: an answer without an end was taken", name)
			}
		})
		if used > uint64(factor*size) {
			t.Errorf("%s: an event of %d bytes cost %d", name, size, used)
		}
		transport.CloseIdleConnections()
		server.Close()
	}
}
