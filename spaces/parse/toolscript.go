package parse

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/constant"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// scriptKeys are the constants that hold the metadata of a script, with the
// keys that YAML has for it.
var scriptKeys = []struct{ constant, key string }{
	{"__version__", "version"},
	{"__tool_type__", "tool_type"},
	{"__executor_id__", "executor_id"},
	{"__category__", "category"},
	{"__tool_description__", "description"},
	{"__warm__", "warm"},
	{"__network__", "network"},
	{"__writable__", "writable"},
	{"__credentials__", "credentials"},
	{"CONFIG_SCHEMA", item.KeySchema},
	{"CONFIG_RESOLVE", "config_resolve"},
	{"ENV_CONFIG", "env_config"},
}

// Network is how a tool file of an extension declares that it reaches the network.
func Network(ext string) string {
	switch ext {
	case ".yaml", ".yml":
		return "network: true"
	case ".sh":
		return "# @network true"
	case ".py":
		return "__network__ = True"
	}
	return "const __network__ = true"
}

// Schema is how a tool file of an extension declares its parameters.
func Schema(ext string) string {
	switch ext {
	case ".yaml", ".yml":
		return item.KeySchema
	case ".sh":
		return "each parameter in the first comment: # @param {string} NAME - what it is; or # @param " + noParams + " where it takes none"
	case ".py":
		return "CONFIG_SCHEMA = {…}, a JSON Schema"
	}
	return "const CONFIG_SCHEMA = {…}, a JSON Schema"
}

func scriptNames() []string {
	names := make([]string, len(scriptKeys))
	for i, k := range scriptKeys {
		names[i] = k.constant
	}
	return names
}

// header is what the comment at the beginning of a script says.
type header struct {
	description string
	tags        map[string]string // version, tool_type, executor_id, category
	params      map[string]any    // a schema; nil without any
}

// scriptTool makes a document of the constants of a script. Its header may say the
// rest.
func scriptTool(table map[string]constant.Constant, h header) *item.ToolDoc {
	doc := &item.ToolDoc{Metadata: map[string]any{}}
	for key, value := range h.tags {
		doc.Metadata[key] = value
	}
	for _, k := range scriptKeys {
		c, bound := table[k.constant]
		switch {
		case !bound:
		case c.Reason != "":
			delete(doc.Metadata, k.key)
			doc.Notes = append(doc.Notes, item.Note{Key: k.key, Text: "not static: it " + c.Reason, Line: c.Line})
		default:
			doc.Metadata[k.key] = c.Value
		}
	}
	doc.Version, doc.ToolType = metadataText(doc, "version"), metadataText(doc, "tool_type")
	doc.ExecutorID, doc.Category = metadataText(doc, "executor_id"), metadataText(doc, "category")
	if doc.Description = metadataText(doc, "description"); doc.Description == "" {
		doc.Description = h.description
	}
	scriptSchema(doc, table["CONFIG_SCHEMA"], h.params)
	if len(doc.Metadata) == 0 {
		doc.Metadata = nil
	}
	return doc
}

// scriptSchema sets the schema of a script. A script whose schema is of no use
// may run all the same.
func scriptSchema(doc *item.ToolDoc, declared constant.Constant, params map[string]any) {
	switch value := declared.Value.(type) {
	case nil:
		if declared.Reason == "" && params != nil {
			doc.Schema, doc.Metadata[item.KeySchema] = params, params
		}
	case map[string]any:
		doc.Schema = value
	default:
		doc.Notes = append(doc.Notes, item.Note{Key: item.KeySchema, Text: "is not a JSON Schema of an object", Line: declared.Line})
	}
}

// metadataText is a value of the metadata as text; a version may be a number.
func metadataText(doc *item.ToolDoc, key string) string {
	switch v := doc.Metadata[key].(type) {
	case string:
		return strings.TrimSpace(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return fmt.Sprint(v)
	}
	return ""
}

// belowShebang is the text of a file with an empty line in place of a shebang,
// so that lines keep their numbers.
func belowShebang(file *source) string {
	shebang, rest := cutShebang([]byte(file.text))
	if len(shebang) == 0 {
		return file.text
	}
	return "\n" + string(rest)
}
