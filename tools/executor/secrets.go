package executor

import (
	"encoding/json"
	"strings"

	"github.com/rye-mcp/rye-mcp/tools/shellline"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Secrets are values that the model of a thread knows by their placeholders only.
type Secrets interface {
	// Reveal puts the values in the place of their placeholders in the strings of a
	// JSON value.
	Reveal(json.RawMessage) json.RawMessage
	// RevealText does the same in a text.
	RevealText(string) string
	// Named are the placeholders in a text that stand for one of these values.
	Named(text string) []string
}

// Reveal returns the arguments for a tool that runs on this machine. The result of
// the tool must be masked. Within a command line a value is quoted for its place.
func Reveal(secrets Secrets, d tool.Definition, args json.RawMessage) (json.RawMessage, error) {
	if secrets == nil {
		return args, nil
	}
	var named map[string]json.RawMessage
	var line string
	if d.CommandLine == "" || json.Unmarshal(args, &named) != nil || json.Unmarshal(named[d.CommandLine], &line) != nil {
		//nolint:nilerr // arguments of another form are for the schema to refuse
		return secrets.Reveal(args), nil
	}
	revealed, err := revealLine(secrets, line)
	if err != nil {
		return nil, tool.Faultf(tool.CodeBadArguments, "%s: %w", d.CommandLine, err).
			WithHint("Put the placeholder of a secret into double quotes, or into an argument of its own.")
	}
	delete(named, d.CommandLine)
	rest, err := json.Marshal(named)
	if err == nil {
		err = json.Unmarshal(secrets.Reveal(rest), &named)
	}
	if err != nil {
		return nil, err
	}
	if named[d.CommandLine], err = json.Marshal(revealed); err != nil {
		return nil, err
	}
	return json.Marshal(named)
}

// revealLine puts values into a command line. One that is a single placeholder is
// the line itself.
func revealLine(secrets Secrets, text string) (string, error) {
	var line shellline.Line
	rest := text
	for _, p := range secrets.Named(text) {
		before, after, _ := strings.Cut(rest, p)
		if p == strings.TrimSpace(text) {
			return secrets.RevealText(text), nil
		}
		line.Text(before)
		line.Value(secrets.RevealText(p))
		rest = after
	}
	line.Text(rest)
	return line.Finish()
}
