package action

import (
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Each call needs exactly the capability built from it, or one that stands for it.
func TestCapabilities(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	type call func(*house, Caller) (any, error)
	execute := func(r ExecuteRequest) call {
		return func(h *house, c Caller) (any, error) { return h.Execute(t.Context(), c, r) }
	}
	fetch := func(r FetchRequest) call {
		return func(h *house, c Caller) (any, error) { return h.Fetch(t.Context(), c, r) }
	}
	find := func(scope string) call {
		return func(h *house, c Caller) (any, error) {
			return h.Search(t.Context(), c, SearchRequest{Query: "*", Scope: scope})
		}
	}
	noteParameters := object(t, map[string]any{"path": "note.txt"})
	cases := []struct {
		name   string
		call   call
		needed string
		enough [][]string // further sets that are enough
		less   [][]string // sets that are not
	}{
		{"tool", execute(ExecuteRequest{ItemType: "tool", ItemID: "rye/file-system/read", Parameters: noteParameters}),
			"rye.execute.tool.rye.file-system.read", nil, [][]string{{"rye.fetch.tool.rye.file-system.read", "rye.execute.directive.rye.file-system.read"}}},
		{"bare id of a tool", execute(ExecuteRequest{ItemID: "rye/file-system/read", Parameters: noteParameters}),
			"rye.execute.tool.rye.file-system.read", nil, [][]string{{"rye.execute.directive.rye.file-system.read"}}},
		{"directive", execute(ExecuteRequest{ItemType: "directive", ItemID: "test/hello"}),
			"rye.execute.directive.test.hello", [][]string{{"rye.execute.tool.rye.agent.threads.thread_directive"}}, [][]string{{"rye.execute.tool.test.hello"}}},
		{"directive by the older tool", execute(ExecuteRequest{ItemID: ThreadDirectiveID, Parameters: object(t, map[string]any{"directive": "test/hello"})}),
			"rye.execute.directive.test.hello", [][]string{{"rye.execute.tool.rye.agent.threads.thread_directive"}}, nil},
		{"knowledge", execute(ExecuteRequest{ItemType: "knowledge", ItemID: "test/facts"}), "rye.execute.knowledge.test.facts", nil, nil},
		{"background tool", execute(ExecuteRequest{ItemType: "tool", ItemID: "rye/file-system/read", Parameters: noteParameters, Async: true}),
			"rye.execute.tool.rye.file-system.read", nil, nil},
		{"operation", execute(ExecuteRequest{ItemID: OrchestratorID, Parameters: object(t, map[string]any{"operation": "get_status"})}),
			"rye.execute.tool.rye.agent.threads.orchestrator", nil, nil},
		{"fetch", fetch(FetchRequest{ItemType: "knowledge", ItemID: "test/facts"}), "rye.fetch.knowledge.test.facts",
			[][]string{{"rye.search.knowledge.test.facts"}}, [][]string{{"rye.execute.knowledge.test.facts"}}},
		{"fetch by query", fetch(FetchRequest{Query: "*", ItemType: "tool"}), "", [][]string{{"rye.fetch.tool.*", "rye.fetch.tool.**"}, {"rye.search.tool.*", "rye.search.tool.**"}}, [][]string{{"rye.fetch.tool"}}},
		{"search a kind", find("directive"), "", [][]string{{"rye.search.directive.*", "rye.search.directive.**"}}, [][]string{{"rye.search.directive"}, {"rye.search.directive.*"}}},
		{"search by capability", find("rye.search.tool"), "", [][]string{{"rye.search.tool.*", "rye.search.tool.**"}}, nil},
		{"search everything", find(""), "", [][]string{{"rye.search.directive.*", "rye.search.directive.**",
			"rye.search.tool.*", "rye.search.tool.**", "rye.search.knowledge.*", "rye.search.knowledge.**"}},
			[][]string{{"rye.search.directive.*", "rye.search.directive.**"}}},
		{"search a pattern", find("tool.rye.*"), "", [][]string{{"rye.search.tool.rye.*", "rye.search.tool.rye.**"}},
			[][]string{{"rye.search.tool.rye.*"}, {"rye.search.tool"}}},
		{"search below an id", find("tool/rye"), "",
			[][]string{{"rye.search.tool.rye", "rye.search.tool.rye.*", "rye.search.tool.rye.**"}}, [][]string{{"rye.search.tool.rye"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			enough := c.enough
			if c.needed != "" {
				enough = append(enough, []string{c.needed})
			}
			for _, held := range enough {
				h := newHouse(t)
				if _, err := c.call(h, h.holder(held...)); err != nil {
					t.Errorf("%v is not enough: %v", held, err)
				}
			}
			for _, held := range append(c.less, nil) {
				h := newHouse(t)
				got, err := c.call(h, h.holder(held...))
				details := wantFault(t, got, err, tool.CodePermissionDenied, "")
				if missing := details["missing_capability"]; held == nil && c.needed != "" && c.name != "bare id of a tool" && missing != c.needed {
					t.Errorf("missing_capability is %v, want %s", missing, c.needed)
				}
				if h.threads.start != nil || h.threads.run != nil || h.threads.operate != "" {
					t.Error("something was started")
				}
			}
			h := newHouse(t)
			unknown := h.thread()
			unknown.Allow = nil
			got, err := c.call(h, unknown)
			wantFault(t, got, err, tool.CodePermissionDenied, "not known")
		})
	}
}

// TestDiscoveryOfAKind lets a thread look for what its permissions name with a *, in
// whatever form it says so, and no further.
func TestDiscoveryOfAKind(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	doc, err := parse.Directive("d.md", []byte("```xml\n<directive name=\"d\"><metadata><permissions><fetch><directive>*</directive><tool>rye.file-system.*</tool></fetch></permissions></metadata></directive>\n```\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := h.holder()
	c.Allow = func(required string) error {
		covers := func(pattern string) bool { return strings.HasPrefix(required, strings.TrimSuffix(pattern, "*")) }
		if !slices.ContainsFunc(doc.Permissions.Capabilities, covers) {
			return tool.Faultf(tool.CodePermissionDenied, "this thread lacks %s", required)
		}
		return nil
	}
	for _, scope := range []string{"directive", "directive.*", "directive.test.*", "rye.search.directive.*", "tool.rye.file-system.*", "tool/rye/file-system/read"} {
		if _, err := h.Search(t.Context(), c, SearchRequest{Query: "*", Scope: scope}); err != nil {
			t.Errorf("rye_search of %s: %v", scope, err)
		}
		if _, err := h.Fetch(t.Context(), c, FetchRequest{Query: "*", Scope: scope}); err != nil {
			t.Errorf("rye_fetch of %s: %v", scope, err)
		}
	}
	for scope, missing := range map[string]string{
		"tool": "tool.*", "tool.rye.*": "tool.rye.*", "knowledge": "knowledge.*", "": "tool.*", "tool.rye.bash": "tool.rye.bash",
	} {
		found, err := h.Search(t.Context(), c, SearchRequest{Query: "*", Scope: scope})
		if details := wantFault(t, found, err, tool.CodePermissionDenied, "rye.search."+missing); details["missing_capability"] != "rye.search."+missing {
			t.Errorf("scope %q lacks %v, want %s", scope, details["missing_capability"], missing)
		}
		got, err := h.Fetch(t.Context(), c, FetchRequest{Query: "*", Scope: scope})
		if details := wantFault(t, got, err, tool.CodePermissionDenied, "rye.fetch."+missing); details["missing_capability"] != "rye.fetch."+missing {
			t.Errorf("scope %q lacks %v, want %s", scope, details["missing_capability"], missing)
		}
	}
}

func TestThreadsStayInTheirProject(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	other := t.TempDir()
	for name, call := range map[string]func(c Caller, path string) (any, error){
		"execute": func(c Caller, path string) (any, error) {
			return h.Execute(t.Context(), c, ExecuteRequest{ItemID: "test/facts", ProjectPath: path})
		},
		"fetch": func(c Caller, path string) (any, error) {
			return h.Fetch(t.Context(), c, FetchRequest{ItemID: "test/facts", ProjectPath: path})
		},
		"search": func(c Caller, path string) (any, error) {
			return h.Search(t.Context(), c, SearchRequest{Query: "*", ProjectPath: path})
		},
		"sign": func(c Caller, path string) (any, error) {
			return h.Sign(t.Context(), c, SignRequest{ItemType: "knowledge", ItemID: "test/facts", ProjectPath: path})
		},
	} {
		got, err := call(h.thread(), other)
		wantFault(t, got, err, tool.CodeOutsideProject, "own project")
		if name == "sign" {
			continue // needs a key
		}
		for _, path := range []string{"", h.project, h.project + "/"} {
			if _, err := call(h.thread(), path); err != nil {
				t.Errorf("%s with %q: %v", name, path, err)
			}
		}
	}
}
