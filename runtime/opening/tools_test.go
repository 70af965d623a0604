package opening_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm/textcalls"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/builtin/file"
	"github.com/rye-mcp/rye-mcp/tools/builtin/shell"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/palette"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

var update = flag.Bool("update", false, "rewrite golden files")

// operations stands for the threads of a project.
type operations struct{ action.Threads }

func (operations) Orchestrator() (tool.Definition, error) {
	return tool.Definition{ID: action.OrchestratorID, Description: strings.Repeat("x", 1900), Schema: json.RawMessage(`{"type":"object"}`)}, nil
}

func newToolbox(t *testing.T) opening.Toolbox {
	t.Helper()
	builtins, err := executor.New(append(file.Tools(file.Deps{User: t.TempDir()}), shell.New(nil))...)
	if err != nil {
		t.Fatal(err)
	}
	return opening.Toolbox{
		Resolver: resolve.New(resolve.Roots{System: system.FS()}), Executor: builtins, Actions: action.New(action.Deps{Threads: operations{}}),
	}
}

// The short forms that the model of a thread is given of the primary actions are true:
// they take these arguments, with these values.
func TestShortFormsAreTrue(t *testing.T) {
	t.Parallel()
	box := newToolbox(t)
	p, err := box.Palette(opening.Wanted{Grant: permission.Grant{Own: []string{"*"}}})
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Type       string
		Required   []string
		Enum       []string
		Properties map[string]schema
	}
	read := func(raw json.RawMessage) (s schema) {
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		return s
	}
	seen := 0
	for _, whole := range box.Actions.Tools(action.Caller{}) {
		e, offered := p.Get(whole.Definition().ID)
		if !offered {
			t.Fatalf("%s is not offered", whole.Definition().ID)
		}
		short, all := read(e.Definition.Schema), read(whole.Definition().Schema)
		for name, property := range short.Properties {
			seen++
			taken, known := all.Properties[name]
			if !known || taken.Type != property.Type || slices.ContainsFunc(property.Enum, func(v string) bool { return !slices.Contains(taken.Enum, v) }) {
				t.Errorf("%s: %s is %+v, and it takes %+v", e.Name, name, property, taken)
			}
		}
		for _, name := range all.Required {
			if !slices.Contains(short.Required, name) {
				t.Errorf("%s: %s is not said to be required", e.Name, name)
			}
		}
	}
	if seen < 12 {
		t.Errorf("%d arguments", seen)
	}
}

// The cost of palettes with each vendor, in tokens of four bytes of the request, stands in
// testdata/cost.md. Beyond the tools that a directive names it is at most 700.
func TestWhatPalettesCost(t *testing.T) {
	t.Parallel()
	box := newToolbox(t)
	outputs := []item.Output{{Name: "result", Type: "string", Required: true, Description: "what was found"}}
	var b strings.Builder
	b.WriteString("| may do | Anthropic | OpenAI | text | beyond tools |\n|---|---|---|---|---|\n")
	for _, own := range [][]string{
		nil,
		{"rye.execute.tool.rye.file-system.read"},
		{"rye.execute.tool.rye.file-system.*"},
		{"rye.execute.tool.rye.file-system.*", "rye.fetch.*", "rye.sign.*"},
		{"rye.execute.tool.rye.file-system.*", "rye.execute.tool.rye.agent.threads.thread_directive"},
		{"rye.execute.directive.*", "rye.search.*"},
		{"rye.execute.tool.*"},
		{"*"},
	} {
		p, err := box.Palette(opening.Wanted{Grant: permission.Grant{Own: own}, Outputs: outputs, Tokens: 200_000})
		if err != nil {
			t.Fatal(err)
		}
		anthropic, openai, beyond := 0, 0, 0
		told := opening.Tools(p)
		for i, e := range p.Entries {
			size := len(e.Name) + len(e.Definition.Description) + len(told[i].Schema)
			anthropic += size + len(`{"input_schema":,"name":"","description":""},`)
			openai += size + len(`{"type":"function","function":{"name":"","description":"","parameters":}},`)
			if e.Kind != palette.KindTool {
				beyond += size + len(`{"type":"function","function":{"name":"","description":"","parameters":}},`)
			}
		}
		inText, _ := opening.SizeOf(config.ToolUseText)(opening.Tools(p))
		if whole, _ := textcalls.Size(opening.Tools(p)); whole != inText {
			t.Errorf("tools in text: %d and %d", inText, whole)
		}
		if beyond > 4*700 {
			t.Errorf("%v: %d tokens beyond the tools", own, beyond/4)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", strings.Join(own, ", "), anthropic/4, openai/4, inText/4, beyond/4)
	}
	golden := filepath.Join("testdata", "cost.md")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != b.String() {
		t.Errorf("%v, got\n%s\nwant\n%s", err, b.String(), want)
	}
}
