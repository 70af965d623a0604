package executor

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// quoted is the secret token of a thread, which the shell would take apart.
type quoted struct{}

const (
	placeholder  = "{secret:token}"
	quotedSecret = `it's "$(id)"`
)

func (quoted) RevealText(text string) string {
	return strings.ReplaceAll(text, placeholder, quotedSecret)
}

func (quoted) Reveal(args json.RawMessage) json.RawMessage {
	return json.RawMessage(strings.ReplaceAll(string(args), placeholder, `it's \"$(id)\"`))
}

func (quoted) Named(text string) []string {
	if strings.Contains(text, placeholder) {
		return []string{placeholder}
	}
	return nil
}

// TestAttackSecretInCommandLine: the value of a secret has quotes and commands in it, and a model writes its placeholder into a command line. The value is quoted for the place where it stands.
func TestAttackSecretInCommandLine(t *testing.T) {
	t.Parallel()
	line := tool.Definition{CommandLine: "command"}
	reveal := func(command string) (json.RawMessage, error) {
		args, err := json.Marshal(map[string]string{"command": command, "other": placeholder})
		if err != nil {
			t.Fatal(err)
		}
		return Reveal(quoted{}, line, args)
	}
	for given, want := range map[string]string{
		"curl -H {secret:token} x": `curl -H 'it'\''s "$(id)"' x`, `curl "a {secret:token}"`: `curl "a it's \"\$(id)\""`, `'{secret:token}'`: `'it'\''s "$(id)"'`,
		"{secret:token}": quotedSecret, "none": "none",
	} {
		got, err := reveal(given)
		var args struct{ Command, Other string }
		if err == nil {
			err = json.Unmarshal(got, &args)
		}
		if err != nil || args.Command != want || args.Other != quotedSecret {
			t.Errorf("%s: %s, %v", given, got, err)
		}
	}
	_, err := reveal("echo `{secret:token}`")
	if f := tool.AsFault(err); f == nil || f.Code != tool.CodeBadArguments || strings.Contains(f.Message, "id") {
		t.Errorf("got %v", err)
	}
}
