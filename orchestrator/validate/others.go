package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// validateTool runs the checks of a tool. The error is that of reading it.
func validateTool(l *list, w *world, found *resolve.Found) error {
	doc, err := found.Tool()
	if err != nil {
		return err
	}
	notes, runs := w.Runs(found)
	checkSchema(l, found, doc, errors.Is(runs, chain.ErrNoTool))
	checkExecutor(l, found, runs)
	checkKeys(l, found, doc)
	for _, note := range notes {
		if found.Ext == ".yaml" || found.Ext == ".yml" {
			l.warnf(CodeKeyUnknown, firstLine(found.Content, "config:"), "", "%s", note)
		} else {
			l.warnf(CodeToolInvalid, firstLine(found.Content, "def execute", "execute", "def run", "def main", "export"), "see rye-mcp help core/tools", "%s", note)
		}
	}
	checkNetwork(l, found, doc)
	return nil
}

// network matches what programs ask the network with, by language.
var network = sync.OnceValue(func() map[string]*regexp.Regexp {
	js := regexp.MustCompile(`\b(fetch)\(|\b(?:require\(\s*|from\s+|import\s+)["'](?:node:)?(axios|node-fetch|undici|got|https?|ws|openai|@anthropic-ai/sdk)["']`)
	return map[string]*regexp.Regexp{
		".py": regexp.MustCompile(`(?m)^\s*(?:import|from)\s+(requests|httpx|aiohttp|urllib3|urllib\.request|http\.client|websockets|boto3|openai|anthropic)\b|^\s*from\s+(urllib)\s+import\s+.*\brequest\b`),
		".sh": regexp.MustCompile(`(?m)^[^#\n]*\b(curl|wget)\s`),
		".js": js, ".mjs": js, ".cjs": js, ".ts": js,
	}
})

// checkNetwork finds programs that ask the network and do not declare that they do.
func checkNetwork(l *list, found *resolve.Found, doc *item.ToolDoc) {
	asks := network()[found.Ext]
	if asks == nil || doc.ToolType == chain.TypeLibrary || doc.Metadata["network"] != nil || doc.Metadata["credentials"] != nil {
		return
	}
	at := asks.FindSubmatchIndex(found.Content)
	if at == nil {
		return
	}
	what := ""
	for group := range slices.Chunk(at[2:], 2) { // one of them matches
		if group[0] >= 0 {
			what, at[0] = string(found.Content[group[0]:group[1]]), group[0]
		}
	}
	l.warnf(CodeNetwork, 1+bytes.Count(found.Content[:at[0]], []byte("\n")), "declare "+parse.Network(found.Ext)+", or a list of hosts",
		"%s asks the network, and the tool does not declare that: where commands are confined it reaches none", what)
}

// checkKeys finds keys of a YAML tool that nobody reads.
func checkKeys(l *list, found *resolve.Found, doc *item.ToolDoc) {
	if found.Ext != ".yaml" && found.Ext != ".yml" {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(doc.Metadata)) {
		if why, near := chain.UnknownKey(key); why != "" {
			l.warnf(CodeKeyUnknown, firstLine(found.Content, key), meant(near), "%s", why)
		}
	}
}

// schemaKeys are the names under which files declare the schema of a tool.
var schemaKeys = []string{"config_schema", "input_schema", "parameters", "CONFIG_SCHEMA", "@param"}

// checkSchema finds parameters that will not be checked, and schemas that cannot
// be. Part says that the item is a part of what runs tools, which nobody calls.
func checkSchema(l *list, found *resolve.Found, doc *item.ToolDoc, part bool) {
	for _, note := range doc.Notes {
		code := CodeMetadata
		if note.Key == item.KeySchema {
			code = CodeSchemaDynamic
		}
		l.warnf(code, note.Line, "write it as a literal", "%s", note)
	}
	if doc.Schema == nil {
		if doc.SchemaNote() == "" && !part {
			l.warnf(CodeSchemaNone, 0, declareSchema(found), "it declares no schema, so its parameters are not checked")
		}
		return
	}
	raw, err := json.Marshal(doc.Schema)
	if err == nil {
		err = tool.Validate(raw, json.RawMessage(`{}`))
	}
	if err != nil && !errors.As(err, new(*tool.Fault)) { // a fault is about the arguments
		l.errorf(CodeSchemaInvalid, firstLine(found.Content, schemaKeys...), "", "%v", err)
	}
}

// otherSchema matches what people call the schema of a script.
var otherSchema = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:export\s+)?(?:const\s+|let\s+|var\s+)?((?i:config_schema|configSchema|input_schema|inputSchema|parameters|schema))\s*(?::[^=\n]*)?=`)
})

// declareSchema says how a file declares its parameters.
func declareSchema(found *resolve.Found) string {
	if found.Ext == ".sh" || found.Ext == ".yaml" || found.Ext == ".yml" {
		return "declare " + parse.Schema(found.Ext)
	}
	if m := otherSchema().FindSubmatch(found.Content); m != nil {
		return fmt.Sprintf("call it CONFIG_SCHEMA, and not %s", m[1])
	}
	return "declare " + parse.Schema(found.Ext)
}

// checkExecutor finds tools that nothing can run. The items that tools run on are not run
// by themselves.
func checkExecutor(l *list, found *resolve.Found, err error) {
	if err == nil || errors.Is(err, chain.ErrNoTool) {
		return
	}
	if f, ok := errors.AsType[*tool.Fault](err); ok && f.Code == tool.CodeInvalidItem {
		l.errorf(CodeToolInvalid, firstLine(found.Content, "config:", "executor_id"), f.Hint, "%s", f.Message)
		return
	}
	l.errorf(CodeExecutor, firstLine(found.Content, "executor_id", "__executor_id__"), "", "%v", err)
}

// validateKnowledge runs the checks of knowledge. The error is that of reading
// it.
func validateKnowledge(l *list, w *world, found *resolve.Found) error {
	doc, err := found.Knowledge()
	if err != nil {
		return err
	}
	checkReferences(l, w, found, "references", doc.References)
	checkReferences(l, w, found, "extends", doc.Extends)
	return nil
}

// checkReferences finds ids that name no item. A reference may be about anything
// else, such as an address.
func checkReferences(l *list, w *world, found *resolve.Found, key string, ids []string) {
	for _, id := range ids {
		if item.CheckID(id) != nil || strings.Contains(id, ":") || strings.ContainsAny(id, " ") {
			continue
		}
		if err := w.exists("", id); err != nil {
			message, try := missing(err)
			l.warnf(CodeReference, firstLine(found.Content, id), try, "%s: %s", key, message)
		}
	}
}

// firstLine is the first line that holds one of the texts; 0 when none does.
func firstLine(content []byte, texts ...string) int {
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		for _, text := range texts {
			if strings.Contains(line, text) {
				return n
			}
		}
	}
	return 0
}
