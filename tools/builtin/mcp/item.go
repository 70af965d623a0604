package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/executor/mcpclient"
)

// Bounds of what is taken over from a server's word.
const (
	maxDescription = 1000     // bytes, of a tool
	maxAnnotation  = 300      // bytes, of a part of its schema
	maxSchema      = 64 << 10 // bytes; a longer one is not taken over
)

// toolItem is the item of a server's tool.
type toolItem struct {
	Version     string     `yaml:"version"`
	ToolType    string     `yaml:"tool_type"`
	ExecutorID  string     `yaml:"executor_id"`
	Category    string     `yaml:"category"`
	Description string     `yaml:"description"`
	Config      toolConfig `yaml:"config"`
	InputSchema yaml.Node  `yaml:"input_schema"`
}

type toolConfig struct {
	Server   string `yaml:"server"`
	ToolName string `yaml:"tool_name"`
}

// typeTool is the tool_type of these items.
const typeTool = "mcp"

// file is the item of a tool.
type file struct {
	id      string
	content []byte
}

// itemOf makes the item of a server's tool, or says why it cannot be one.
func itemOf(s mcpclient.Server, t mcpclient.Tool, id string) (file, error) {
	schema, err := schemaOf(t.Schema)
	if err != nil {
		return file{}, err
	}
	declared := toolItem{
		Version: "1.0.0", ToolType: typeTool, ExecutorID: "rye/core/runtimes/mcp/" + string(s.Transport),
		Category: path.Dir(id), Description: describe(s.ID, t), InputSchema: schema,
		Config: toolConfig{Server: s.ID, ToolName: t.Name},
	}
	content, err := encode(declared)
	return file{id, content}, err
}

// encode writes an item as people write them.
func encode(item any) ([]byte, error) {
	var content bytes.Buffer
	encoder := yaml.NewEncoder(&content)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(item), encoder.Close())
	return content.Bytes(), err
}

// describe puts what a server says of a tool between marks, as models are told whose
// words they are.
func describe(server string, t mcpclient.Tool) string {
	words := t.Description
	if words == "" {
		words = t.Title
	}
	if words = oneLine(words, maxDescription); words == "" {
		return fmt.Sprintf("A tool of the MCP server %s, which says nothing of it.", server)
	}
	return fmt.Sprintf("A tool of the MCP server %s, which says of it: «%s»", server, strings.NewReplacer("«", "‹", "»", "›").Replace(words))
}

// oneLine is a foreign text on one line, without characters that are not shown, and
// cut to its bound.
func oneLine(text string, bound int) string {
	text = strings.ToValidUTF8(text, "�")
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	return item.Clip(strings.Join(strings.Fields(text), " "), bound)
}

// schemaOf is the schema of a tool as YAML, with the words in it bounded.
func schemaOf(raw json.RawMessage) (schema yaml.Node, err error) {
	if len(raw) > maxSchema {
		return schema, fmt.Errorf("its schema has %d bytes; at most %d are taken over", len(raw), maxSchema)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		return schema, fmt.Errorf("its schema is no JSON object: %w", err)
	}
	// JSON without escapes of its own is YAML.
	text, err := json.Marshal(bounded(value))
	if err != nil {
		return schema, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return schema, fmt.Errorf("its schema: %w", err)
	}
	plain(document.Content[0])
	return *document.Content[0], nil
}

// bounded bounds the words of a schema: titles, descriptions and comments.
func bounded(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			if text, ok := member.(string); ok && (key == "title" || key == "description" || key == "$comment") {
				value[key] = oneLine(text, maxAnnotation)
				continue
			}
			value[key] = bounded(member)
		}
	case []any:
		for i, element := range value {
			value[i] = bounded(element)
		}
	}
	return value
}

// plain gives nodes the style of a file that people read.
func plain(node *yaml.Node) {
	node.Style = 0
	node.HeadComment, node.LineComment, node.FootComment = "", "", ""
	for _, child := range node.Content {
		plain(child)
	}
}

// folderOf is where the items of a server's tools lie: mcp/github for the server
// mcp/servers/github.
func folderOf(server string) string { return "mcp/" + path.Base(server) }

// idOf is the id of a tool's item, which is none of those that are taken.
func idOf(server, name string, taken map[string]bool) string {
	plain := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	if plain = plain[:min(len(plain), 64)]; strings.Trim(plain, "_") == "" {
		plain = "tool"
	}
	id := folderOf(server) + "/" + plain
	for n := 2; taken[strings.ToLower(id)]; n++ {
		id = fmt.Sprintf("%s/%s-%d", folderOf(server), plain, n)
	}
	taken[strings.ToLower(id)] = true // some file systems do not tell case apart
	return id
}
