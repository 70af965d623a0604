package plan

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/settings"
	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/secret"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Routing hooks see the model that the caller asks for, then the directive's own choice.
func TestRoutingKnowsTheModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asked string
		own   item.ModelChoice
		want  string
	}{
		{"asked", item.ModelChoice{ID: "own", Tier: "fast"}, "asked"}, {"", item.ModelChoice{ID: "own", Tier: "fast"}, "own"}, {"", item.ModelChoice{Tier: "fast"}, "fast"},
	} {
		data := routeData(&resolve.Found{}, &item.DirectiveDoc{Model: c.own}, nil, c.asked)
		if data["model"] != c.want {
			t.Errorf("%+v: %v", c, data["model"])
		}
	}
}

// TestChooseModelTells: old prices are told of with the first start, and a key that
// cannot be had refuses it.
func TestChooseModelTells(t *testing.T) {
	t.Parallel()
	user := t.TempDir()
	dir := filepath.Join(user, ".ai", "config", "agent", "providers")
	vault := "api: openai\nbase_url: http://127.0.0.1:9\napi_key_command: [/bin/false]\nallow_unpriced: true\ntiers: {fast: m}\n"
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "vault.yaml"), []byte(vault), 0o600)); err != nil {
		t.Fatal(err)
	}
	source := provider.NewSource(func(string) string { return "key" }).Clock(func() time.Time { return time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC) })
	read := config.New(resolve.Roots{User: user, System: system.FS()}).Read()
	c := &Call{Planner: &Planner{Threads: &threads.Threads{}}, Call: &settings.Call{Config: read, Providers: source.With(read)}}
	for i, want := range []int{1, 0} {
		p := &Plan{Doc: &item.DirectiveDoc{Model: item.ModelChoice{ID: "anthropic/claude-haiku-4-5"}}}
		if err := c.ChooseModel(t.Context(), p); err != nil || len(p.Warnings) != want {
			t.Errorf("start %d: warnings %q, %v", i, p.Warnings, err)
		}
	}
	p := &Plan{Doc: &item.DirectiveDoc{Model: item.ModelChoice{ID: "vault/m"}}}
	if err := c.ChooseModel(t.Context(), p); err != nil { // a dry run needs no key
		t.Error(err)
	}
	var failed *provider.KeyError
	if err := c.HaveKey(t.Context(), p); !errors.As(err, &failed) {
		t.Errorf("got %v", err)
	}
}

func TestFirstWords(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 2*maxNameRunes)
	for text, want := range map[string]string{
		"":                                "",
		"  two \n words\t":                "two words",
		strings.Repeat("word ", 12) + "x": strings.TrimSpace(strings.Repeat("word ", 12)) + "…",
		long:                              long[:2*maxNameRunes] + "…",
	} {
		if got := FirstWords(text); got != want {
			t.Errorf("FirstWords(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestName: the first words of the prompt, as a person would read them.
func TestName(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"\n# Review\n\nLook at **{input:path}** and `go.mod`.":                          "Review Look at src/a.go and go.mod.",
		"\n<process>\n  <step name=\"w\">\n Write \"{input:path}\".\n</step></process>": `Write "src/a.go".`,
		"```\ncode 1 < 2\n```":      "code 1 < 2",
		"Use {input:token} at once": "Use {secret:token} at once",
		"a\x1b[31mb\u202ec":         "a [31mb c",
		"":                          "what it does",
		" <a/> \n":                  "what it does",
	} {
		p := &Plan{
			Doc: &item.DirectiveDoc{Body: body, Description: "what it does"}, Found: &resolve.Found{Entry: resolve.Entry{ID: "d"}},
			Inputs: map[string]any{"path": "src/a.go", "token": "{secret:token}"},
		}
		if got := p.Name(nil); got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
	agent := &Plan{Doc: &item.DirectiveDoc{Body: "You are careful.", Syntax: item.SyntaxNone}, Inputs: map[string]any{"prompt": "Find the bug"}}
	if got := agent.Name(nil); got != "Find the bug" {
		t.Errorf("an agent: %q", got)
	}
	if got := (&Plan{Doc: &item.DirectiveDoc{}, Found: &resolve.Found{Entry: resolve.Entry{ID: "d"}}}).Name(nil); got != "d" {
		t.Errorf("without any text: %q", got)
	}
}

func TestHandOver(t *testing.T) {
	t.Parallel()
	doc := &item.DirectiveDoc{Name: "child", Inputs: []item.Input{
		{Name: "key", Type: "string", Secret: true}, {Name: "note", Type: "string"}, {Name: "list", Type: "array"},
	}}
	vault := secret.New(map[string]string{"token": "the-value", "more": "another-1"})
	tests := []struct {
		name    string
		given   map[string]any
		want    map[string]any
		refused string
	}{
		{"as it is", map[string]any{"key": "{secret:token}"}, map[string]any{"key": "the-value"}, ""},
		{"within", map[string]any{"key": "Bearer {secret:token}{secret:more}", "note": "x"},
			map[string]any{"key": "Bearer the-valueanother-1", "note": "x"}, ""},
		{"not known", map[string]any{"key": "{secret:other}", "note": "{secret:other}"},
			map[string]any{"key": "{secret:other}", "note": "{secret:other}"}, ""},
		{"of its own", map[string]any{"key": "made up by the model"}, map[string]any{"key": "made up by the model"}, ""},
		{"not secret", map[string]any{"note": "it is {secret:token}"}, nil, "the input note of child"},
		{"deep", map[string]any{"list": []any{map[string]any{"a": "{secret:token}"}}}, nil, "the input list of child"},
		{"as a name", map[string]any{"list": map[string]any{"{secret:token}": 1}}, nil, "the input list of child"},
		{"undeclared", map[string]any{"nothing": "{secret:token}"}, nil, "the input nothing of child"},
		{"no text", map[string]any{"key": []any{"{secret:token}"}}, nil, "the input key of child"},
	}
	for _, tt := range tests {
		got, err := handOver(doc, tt.given, vault)
		if tt.refused != "" {
			f, ok := errors.AsType[*tool.Fault](err)
			if !ok || f.Code != tool.CodeInvalidInputs || !strings.Contains(f.Message, tt.refused) || strings.Contains(f.Message, "the-value") {
				t.Errorf("%s: %v, %v", tt.name, got, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v, %v", tt.name, got, err)
		}
	}
	if got, err := handOver(doc, map[string]any{"note": "{secret:token}"}, nil); err != nil || got["note"] != "{secret:token}" {
		t.Errorf("outside threads: %v, %v", got, err)
	}
}
