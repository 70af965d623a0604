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
	key := testKey(t)
	documents := map[string]string{}
	for name, value := range alloctest.JSON(alloctest.Size(4 << 20)) {
		documents[name] = value
		documents[name+" in a member"] = `{"_signature":"a:b","inputs":` + value + `}`
		if signed, err := sign.EncodeSigned(map[string]any{"inputs": json.RawMessage(value)}, key); err == nil {
			documents[name+" that is signed"] = string(signed)
		}
	}
	alloctest.Linear(t, 250, documents, func(_ string, data []byte) {
		var v struct {
			Inputs json.RawMessage `json:"inputs"`
		}
		_ = sign.OpenSigned(data, key.Public(), &v)
		_ = sign.SignerOf(data)
	})
}
