package main

import (
	"encoding/json"
	"strings"
)

// serverSchema is the version of the format of server.json that is written.
const serverSchema = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

// serverJSON is the entry of the MCP registry.
type serverJSON struct {
	Schema      string             `json:"$schema"`
	Name        string             `json:"name"`
	Title       string             `json:"title"`
	Description string             `json:"description"`
	Version     string             `json:"version"`
	WebsiteURL  string             `json:"websiteUrl"`
	Repository  registryRepository `json:"repository"`
	Packages    []registryPackage  `json:"packages"`
}

type registryRepository struct {
	URL    string `json:"url"`
	Source string `json:"source"`
}

type registryPackage struct {
	Type       string            `json:"registryType"`
	Identifier string            `json:"identifier"` // where it is downloaded from
	Version    string            `json:"version"`
	SHA256     string            `json:"fileSha256"`
	Transport  registryTransport `json:"transport"`
}

type registryTransport struct {
	Type string `json:"type"`
}

// registryEntry says where the bundles of a version are, as server.json.
func registryEntry(version string, bundles []file) ([]byte, error) {
	number := strings.TrimPrefix(version, "v")
	entry := serverJSON{
		Schema: serverSchema, Name: "io.github.rye-mcp/rye-mcp", Title: "rye", Description: short, Version: number,
		WebsiteURL: homepage, Repository: registryRepository{homepage, "github"}, Packages: []registryPackage{},
	}
	for _, b := range bundles {
		entry.Packages = append(entry.Packages, registryPackage{
			"mcpb", homepage + "/releases/download/" + version + "/" + b.name, number, b.sha256, registryTransport{"stdio"},
		})
	}
	data, err := json.MarshalIndent(entry, "", "  ")
	return append(data, '\n'), err
}
