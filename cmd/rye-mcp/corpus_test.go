package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm/scripted"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// corpusModel returns what is declared, and starts the child it is told to.
const corpusModel = `-- model.yaml --
turns:
  - match: {first: 'name="spawn_with_context"', turn: 1}
    tool_calls:
      - name: rye_execute
        input: {item_type: directive, item_id: test/context/leaf_context}
  - match: {first: 'name="spawn_with_context"'}
    tool_calls:
      - name: rye_directive_return
        input: {result: "done", child_thread_id: '{{ index (results "thread_id") 0 }}'}
  - match: {first: 'name="inherited_capabilities_minimal"'}
    tool_calls:
      - name: rye_directive_return
        input: {result: "done", tools_used: "none"}
  - match: {tool: rye_directive_return}
    tool_calls:
      - name: rye_directive_return
        input: {result: "done"}
  - text: Done.
`

// corpusHooks are the hooks of the project that the authors describe, for the
// directives that they lay in the category of the hook.
const corpusHooks = `hooks:
  - id: route_test_hookroute
    event: resolve_extends
    condition:
      all:
        - {path: has_extends, op: eq, value: false}
        - {path: directive, op: in, value: [test/context/hook_routed_test, test/context/full_hook_routed_composition_test]}
    action: {set_extends: test/context/hook_routed_base}
  - id: findings
    event: thread_started
    condition: {path: directive, op: eq, value: test/context/full_hook_routed_composition_test}
    position: after
    action: {primary: fetch, item_type: knowledge, item_id: project/findings}
`

// seen is what an author says that a thread sees: markers by position, and
// tools. All other markers and tools of the table are absent.
type seen struct{ system, before, after, tools string }

// The directives of the corpus about context show the markers that their authors
// describe, and no others.
func TestCorpusContext(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	corpus, err := corpusDir()
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(corpus, lookAlikes) {
		t.Skip("the corpus is not at hand")
	}
	r := newRecorded(t, corpusModel)
	for _, kind := range []string{"directives", "knowledge"} {
		r.noError(os.CopyFS(filepath.Join(r.dir, ".ai", kind), os.DirFS(filepath.Join(corpus, kind))))
	}
	r.write(".ai/config/agent/hooks.yaml", []byte(corpusHooks))
	r.write(".ai/knowledge/project/findings.md", []byte("MARKER: PROJECT_HOOK_TEST_FINDINGS_PRESENT\n"))
	const (
		files = "rye_file_system_edit_lines rye_file_system_glob rye_file_system_grep rye_file_system_ls rye_file_system_read rye_file_system_write"
		// The tools that they may execute have entries of their own, so that rye_execute has none.
		all = "rye_fetch rye_sign " + files
	)
	leaf := seen{"BASE_IDENTITY", "MID_RULES", "LEAF_CHECKLIST", files}
	for directive, want := range map[string][]seen{
		"base_context":                      {{system: "BASE_IDENTITY", tools: files}},
		"mid_context":                       {{system: "BASE_IDENTITY", before: "MID_RULES", tools: files}},
		"leaf_context":                      {leaf},
		"suppress_test":                     {{system: "ALT_IDENTITY", tools: files}},
		"hook_routed_base":                  {{system: "BASE_IDENTITY", before: "HOOK_ROUTED_RULES", tools: files}},
		"hook_routed_test":                  {{system: "BASE_IDENTITY", before: "HOOK_ROUTED_RULES", tools: "rye_fetch " + files}},
		"full_hook_routed_composition_test": {{system: "BASE_IDENTITY", before: "HOOK_ROUTED_RULES", after: "PROJECT_HOOK_TEST_FINDINGS", tools: "rye_file_system_read rye_file_system_write"}},
		"tool_preload_test":                 {{tools: "rye_file_system_grep rye_file_system_read rye_file_system_write"}},
		"broad_capabilities_base":           {{system: "BASE_IDENTITY", tools: all}},
		"inherited_capabilities_test":       {{system: "BASE_IDENTITY", tools: all}},
		"inherited_capabilities_minimal":    {{system: "BASE_IDENTITY", tools: all}},
		"spawn_with_context":                {{}, leaf},
	} {
		firsts := slices.DeleteFunc(r.run("test/context/"+directive, nil), func(asked scripted.Recorded) bool { return asked.Turn != 1 })
		if len(firsts) != len(want) {
			t.Fatalf("%s: %d threads asked the model, want %d", directive, len(firsts), len(want))
		}
		for i, asked := range firsts {
			checkSeen(t, directive, asked, want[i])
		}
	}
}

func checkSeen(t *testing.T, directive string, asked scripted.Recorded, want seen) {
	t.Helper()
	before, rest, _ := strings.Cut(asked.Last, "<directive name=")
	_, after, _ := strings.Cut(rest, "</directive>")
	for _, place := range []struct{ name, text, marker string }{
		{"system prompt", asked.System, want.system}, {"context before", before, want.before}, {"context after", after, want.after},
	} {
		for _, marker := range []string{"BASE_IDENTITY", "ALT_IDENTITY", "MID_RULES", "HOOK_ROUTED_RULES", "LEAF_CHECKLIST", "PROJECT_HOOK_TEST_FINDINGS"} {
			if has := strings.Count(place.text, "MARKER: "+marker+"_PRESENT"); has > 1 || (has == 1) != (marker == place.marker) {
				t.Errorf("%s: %s stands %d times in the %s:\n%s", directive, marker, has, place.name, place.text)
			}
		}
	}
	if want.tools == "" {
		return
	}
	for _, name := range strings.Fields(want.tools) {
		if !slices.Contains(asked.Tools, name) {
			t.Errorf("%s: is not offered %s but %q", directive, name, asked.Tools)
		}
	}
	if !strings.Contains(want.tools, "rye_execute") && slices.Contains(asked.Tools, "rye_execute") {
		t.Errorf("%s: is offered rye_execute beside all that it may execute", directive)
	}
	for _, name := range asked.Tools {
		if strings.HasPrefix(name, "rye_bash") || strings.HasPrefix(name, "rye_file_system") && !slices.Contains(strings.Fields(want.tools), name) {
			t.Errorf("%s: is offered %s", directive, name)
		}
	}
}
