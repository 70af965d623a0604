package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// handOver puts the values of the calling thread's secrets into the secret inputs
// of what it starts. No other input may have one: it would stand in thread.json
// and before the eyes of the child's model.
func handOver(doc *item.DirectiveDoc, given map[string]any, secrets executor.Secrets) (map[string]any, error) {
	if secrets == nil {
		return given, nil
	}
	values := make(map[string]any, len(given))
	for name, value := range given {
		if text, isText := value.(string); isText && isSecret(doc, name) {
			values[name] = secrets.RevealText(text)
			continue
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", name, err)
		}
		if named := secrets.Named(string(raw)); len(named) > 0 {
			return nil, tool.Faultf(tool.CodeInvalidInputs, "%s cannot be given to the input %s of %s, which is not declared secret",
				named[0], name, doc.Name).WithHint("give it to an input that is declared secret, or leave it out")
		}
		values[name] = value
	}
	return values, nil
}

func isSecret(doc *item.DirectiveDoc, name string) bool {
	return slices.ContainsFunc(doc.Inputs, func(in item.Input) bool { return in.Name == name && in.Secret })
}
