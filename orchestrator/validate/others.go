package validate

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
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
		l.warnf(CodeKeyUnknown, firstLine(found.Content, "config:"), "", "%s", note)
	}
	return nil
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
			l.warnf(CodeSchemaNone, 0, "declare "+item.KeySchema, "it declares no schema, so its parameters are not checked")
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

// checkExecutor finds tools that nothing can run. What tools run on is run by nobody
// itself.
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
