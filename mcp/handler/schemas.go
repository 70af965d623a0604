package handler

import (
	_ "embed" // schemas.json
	"encoding/json"
	"fmt"
	"sync"

	"github.com/rye-mcp/rye-mcp/mcp/server"
)

// schemasFile is written by the tests of this package with -update, and checked
// by them against the types.
//
//go:embed schemas.json
var schemasFile []byte

// Schemas returns the schemas of all tools, by name, for [server.Options].
var Schemas = sync.OnceValue(func() map[string]server.Schemas {
	var schemas map[string]server.Schemas
	if err := json.Unmarshal(schemasFile, &schemas); err != nil {
		panic(fmt.Sprintf("bug; schemas.json, which is part of the program: %v", err))
	}
	return schemas
})
