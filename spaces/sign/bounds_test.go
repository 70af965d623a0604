package sign_test

import (
	"encoding/json"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/alloctest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// TestAttackMemoryOfSignedJSON: a signed document of four megabytes nests, repeats or is one long text, so that reading it costs far more than its size.
// The memory that reading takes stays within a fixed multiple of the size, whatever its shape.
func TestAttackMemoryOfSignedJSON(t *testing.T) { //nolint:paralleltest // it measures what is allocated
	documents := map[string]string{}
	for name, value := range alloctest.JSON(alloctest.Size(4 << 20)) {
		documents[name] = value
		documents[name+" in a member"] = `{"_signature":"a:b","inputs":` + value + `}`
	}
	alloctest.Linear(t, 250, documents, func(_ string, data []byte) {
		var v struct {
			Inputs json.RawMessage `json:"inputs"`
		}
		_, _ = sign.DecodeSigned(data, nil, &v)
		_ = sign.SignerOf(data)
	})
}
