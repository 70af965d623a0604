//go:build required

package main

// The modules that rye-mcp has to use, of which each process initializes all. Sqlite is the
// floor's anyway.
import (
	_ "github.com/mark3labs/mcp-go/server"
	_ "github.com/rs/zerolog"
	_ "github.com/santhosh-tekuri/jsonschema/v5"
	_ "gopkg.in/yaml.v3"
)
