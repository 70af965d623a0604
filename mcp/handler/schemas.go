package handler

import (
	_ "embed" // the files of schemas
	"encoding/json"
	"fmt"
	"sync"

	"github.com/rye-mcp/rye-mcp/mcp/server"
)

// The schemas of all tools by their names, as the tests of this package write them with
// -update, and check them against the types. Those of outputs are most of it, and are
// decoded when the first is needed.
var (
	//go:embed schemas/inputs.json
	inputsFile []byte
	//go:embed schemas/outputs.json
	outputsFile []byte

	outputs = sync.OnceValue(func() map[string]json.RawMessage { return decodeSchemas(outputsFile) })
)

// Schemas returns the schemas of all tools, by name, for [server.Options].
func Schemas() map[string]server.Schemas {
	inputs := decodeSchemas(inputsFile)
	schemas := make(map[string]server.Schemas, len(inputs))
	for name, input := range inputs {
		schemas[name] = server.Schemas{Input: input, Output: func() (json.RawMessage, error) { return outputs()[name], nil }}
	}
	return schemas
}

func decodeSchemas(file []byte) (byName map[string]json.RawMessage) {
	if err := json.Unmarshal(file, &byName); err != nil {
		panic(fmt.Sprintf("bug; schemas, which are part of the program: %v", err))
	}
	return byName
}
