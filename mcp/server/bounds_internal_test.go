package server

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/alloctest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestAttackMemoryOfMessages: a client sends messages as long as they may be that nest, repeat or are one long text, so that reading them costs far more than their size.
// The memory that reading takes stays within a fixed multiple of the size, whatever its shape.
func TestAttackMemoryOfMessages(t *testing.T) { //nolint:paralleltest // it measures what is allocated
	longtest.Mark(t)
	messages := map[string]string{}
	for name, value := range alloctest.JSON(alloctest.Size(maxLine) - 1<<10) {
		value = strings.ReplaceAll(value, "\n", " ")
		messages["params "+name] = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + value + `}` + "\n"
		messages["id "+name] = `{"jsonrpc":"2.0","method":"ping","id":` + value + `}` + "\n"
		messages["error "+name] = `{"jsonrpc":"2.0","id":1,"error":` + value + `}` + "\n"
	}
	alloctest.Linear(t, 40, messages, func(_ string, input []byte) {
		lines := newLineReader(bytes.NewReader(input), maxLine)
		for {
			line, err := lines.next()
			if err != nil {
				return
			}
			_, _ = parseMessage(line.data)
		}
	})
}
