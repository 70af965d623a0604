package action

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestInlineDirective(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	got, err := h.Execute(t.Context(), h.client(), ExecuteRequest{ItemID: "test/hello", Parameters: object(t, map[string]any{"who": "Ada"})})
	if err != nil {
		t.Fatal(err)
	}
	d := got.(*InlineDirective)
	if !d.Success || d.Type != "directive" || d.ItemID != "test/hello" || d.Space != "project" ||
		strings.TrimSpace(d.Body) != "Greet Ada 2 times." {
		t.Errorf("got %+v", d)
	}
	if !strings.Contains(d.YourDirections, "hello") || !strings.Contains(d.YourDirections, "greeting") {
		t.Errorf("directions: %s", d.YourDirections)
	}
	for _, given := range []map[string]any{{}, {"who": true}, {"who": "Ada", "wo": "x"}} {
		got, err := h.Execute(t.Context(), h.client(), ExecuteRequest{ItemID: "test/hello", Parameters: object(t, given)})
		details := wantFault(t, got, err, tool.CodeInvalidInputs, "")
		if declared, _ := details["declared_inputs"].([]inputs.Declared); len(declared) != 2 {
			t.Errorf("%v: details %v", given, details)
		}
	}
	if plan, err := h.Execute(t.Context(), h.client(), ExecuteRequest{ItemID: "test/hello", DryRun: true,
		Parameters: object(t, map[string]any{"who": "Ada"})}); err != nil || plan.(*DryRun).Plan.Inputs["times"] != int64(2) {
		t.Errorf("dry run: %+v, %v", plan, err)
	}
}

func TestTool(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	read := func(params any) ExecuteRequest {
		return ExecuteRequest{ItemType: "tool", ItemID: "rye/file-system/read", Parameters: object(t, params)}
	}
	got, err := h.Execute(t.Context(), h.client(), read(map[string]any{"path": "note.txt"}))
	if err != nil {
		t.Fatal(err)
	}
	r := got.(*ToolResult)
	if !r.Success || r.Type != "tool" || r.Space != "system" || r.DurationMS != 1 || len(r.Chain) != 2 || r.Chain[1].ItemID != chain.Builtin {
		t.Errorf("got %+v", r)
	}
	if data := string(object(t, r.Data)); !strings.Contains(data, "|one") {
		t.Errorf("data %s", data)
	}
	got, err = h.Execute(t.Context(), h.client(), read(map[string]any{"pth": "note.txt"}))
	if details := wantFault(t, got, err, tool.CodeBadArguments, `did you mean "path"`); details["schema"] != nil {
		t.Error("the refusal repeats the schema")
	}
	for _, r := range []ExecuteRequest{{DryRun: true}, {Async: true}} {
		r.ItemID, r.Parameters = "rye/file-system/read", object(t, map[string]any{"pth": "x"})
		got, err = h.Execute(t.Context(), h.client(), r)
		wantFault(t, got, err, tool.CodeBadArguments, "pth")
	}
	got, err = h.Execute(t.Context(), h.client(), read(map[string]any{"path": "../x"}))
	wantFault(t, got, err, tool.CodeOutsideProject, "project")
}

func TestToolFailures(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	builtin := "version: 1.0.0\ntool_type: builtin\nexecutor_id: rye/core/builtin\ncategory: test\ndescription: x\n"
	for _, id := range []string{"fails", "stopped", "panics", "absent"} {
		h.put(h.project, "tools/test/"+id+".yaml", builtin)
	}
	h.put(h.project, "tools/test/http.yaml", strings.Replace(builtin, "rye/core/builtin", "rye/core/http", 1))
	h.put(h.project, "tools/test/broken.yaml", "a: [\n")
	for _, c := range []struct {
		id    string
		code  tool.Code
		words string
	}{
		{"test/fails", tool.CodeToolFailed, "test/fails failed: disk full"},
		{"test/stopped", tool.CodeCancelled, "canceled"},
		{"test/panics", tool.CodeInternal, "tool test/panics panicked: lost"},
		{"test/absent", tool.CodeUnsupported, "no such tool"},
		{"test/http", tool.CodeUnsupported, "built-in tools only"},
		{"test/script", tool.CodeUnsupported, "built-in tools only"},
		{"test/broken", tool.CodeInvalidItem, ""},
		{"test/gone", tool.CodeNotFound, "rye_search"},
		{"../x", tool.CodeBadID, ""},
		{DirectiveReturnID, tool.CodeUnsupported, "ends a thread"},
	} {
		got, err := h.Execute(t.Context(), h.client(), ExecuteRequest{ItemType: "tool", ItemID: c.id})
		wantFault(t, got, err, c.code, c.words)
	}
}

func TestKnowledge(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	got, err := h.Execute(t.Context(), h.client(), ExecuteRequest{ItemID: "test/facts"})
	if err != nil {
		t.Fatal(err)
	}
	k := got.(*KnowledgeResult)
	content, _ := k.Data["content"].(string)
	if !k.Success || strings.TrimSpace(content) != "Water is wet." || k.Data["title"] != "Some Facts" || k.Instructions == "" {
		t.Errorf("got %+v", k)
	}
	got, err = h.Execute(t.Context(), h.client(), ExecuteRequest{ItemID: "test/facts", Parameters: object(t, map[string]any{"a": 1})})
	wantFault(t, got, err, tool.CodeBadArguments, "no parameters")
}

func TestBareIDs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.put(h.user, "knowledge/test/hello.md", factsKnowledge)
	got, err := h.Execute(t.Context(), h.client(), ExecuteRequest{ItemID: "test/hello"})
	wantFault(t, got, err, tool.CodeAmbiguous, "item_type")
	got, err = h.Execute(t.Context(), h.client(), ExecuteRequest{ItemID: "test/hell"})
	details := wantFault(t, got, err, tool.CodeNotFound, "rye_search")
	if nearest, _ := details["nearest_ids"].([]string); len(nearest) == 0 || nearest[0] != "test/hello" {
		t.Errorf("details %v", details)
	}
	got, err = h.Execute(t.Context(), h.holder("rye.execute.tool.test.hell"), ExecuteRequest{ItemID: "test/hell"})
	details = wantFault(t, got, err, tool.CodeNotFound, "")
	if nearest, _ := details["nearest_ids"].([]string); len(nearest) != 0 {
		t.Errorf("a thread that may not search is told %v", nearest)
	}
	h.put(h.user, "knowledge/test/only.md", factsKnowledge)
	got, err = h.Execute(t.Context(), h.client(), ExecuteRequest{ItemType: "directive", ItemID: "test/only"})
	wantFault(t, got, err, tool.CodeNotFound, "Give item_type knowledge")
	got, err = h.Execute(t.Context(), h.holder("rye.execute.directive.test.only"), ExecuteRequest{ItemType: "directive", ItemID: "test/only"})
	if details = wantFault(t, got, err, tool.CodeNotFound, ""); details["item_types"] != nil {
		t.Errorf("a thread that may not search is told %v", details)
	}
	h.put(h.project, "knowledge/test/fact.md", factsKnowledge)
	for capability, told := range map[string]bool{"rye.search.directive": false, "rye.search.knowledge": true} {
		got, err = h.Execute(t.Context(), h.holder("rye.execute.directive.test.fact.md", "rye.search.directive", capability), ExecuteRequest{ItemType: "directive", ItemID: "test/fact.md"})
		details = wantFault(t, got, err, tool.CodeNotFound, "")
		if is := details["item_types"] != nil; is != told || strings.Contains(err.Error(), "there is a knowledge") != told ||
			strings.Contains(tool.AsFault(err).Hint, "Give item_type knowledge and item_id test/fact,") != told {
			t.Errorf("with %s: %v, %v", capability, err, details)
		}
	}
	got, err = h.Execute(t.Context(), h.client(), ExecuteRequest{ItemType: "gadget", ItemID: "test/hello"})
	wantFault(t, got, err, tool.CodeBadArguments, "item_type")
}

func TestThreadDirective(t *testing.T) {
	t.Parallel()
	execute := func(caller func(*house) Caller, r ExecuteRequest, params any) (*house, any, error) {
		h := newHouse(t)
		r.ItemType, r.ItemID, r.Parameters = "tool", ThreadDirectiveID, object(t, params)
		got, err := h.Execute(t.Context(), caller(h), r)
		return h, got, err
	}
	for _, name := range []string{"directive_id", "directive_name", "directive"} {
		h, got, err := execute((*house).client, ExecuteRequest{}, map[string]any{
			name: "test/hello", "inputs": map[string]any{"who": "Ada"}, "async": true, "model": "fast",
			"limit_overrides": map[string]any{"turns": 3}, "parent_thread_id": "p-1"})
		if err != nil || got != "started" {
			t.Fatalf("%s: %v, %v", name, got, err)
		}
		s := h.threads.start
		if s.Directive != "test/hello" || s.Inputs["who"] != "Ada" || !s.Async || s.Model != "fast" || s.Limits["turns"] != 3 || s.Parent != "p-1" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	h, got, err := execute((*house).thread, ExecuteRequest{DryRun: true}, map[string]any{"directive": "test/hello"})
	if err != nil || got != "planned" || h.threads.plan.Async || h.threads.start != nil {
		t.Errorf("dry run: %v, %v", got, err)
	}
	h, got, err = execute((*house).thread, ExecuteRequest{Async: true, Model: "outer"}, map[string]any{"directive": "test/hello"})
	if err != nil || got != "started" || !h.threads.start.Async || h.threads.start.Model != "outer" {
		t.Errorf("arguments beside parameters: %v, %v", got, err)
	}
	for _, c := range []struct {
		params map[string]any
		code   tool.Code
		words  string
	}{
		{map[string]any{}, tool.CodeBadArguments, "directive_id"},
		{map[string]any{"directive": "a", "directive_id": "b"}, tool.CodeBadArguments, "a"},
		{map[string]any{"directive": "test/hello", "input": 1}, tool.CodeBadArguments, `did you mean "inputs"`},
		{map[string]any{"directive": "test/helo"}, tool.CodeNotFound, "test/helo"},
		{map[string]any{"directive": "test/hello", "parent_thread_id": "../x"}, tool.CodeBadID, "thread id"},
	} {
		_, got, err := execute((*house).client, ExecuteRequest{}, c.params)
		wantFault(t, got, err, c.code, c.words)
	}
	_, got, err = execute((*house).thread, ExecuteRequest{}, map[string]any{"directive": "test/hello", "parent_thread_id": "p-1"})
	wantFault(t, got, err, tool.CodeUnsupported, "parent")
}

func TestOrchestrator(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	operate := func(r ExecuteRequest, params any) (any, error) {
		r.ItemID, r.Parameters = OrchestratorID, object(t, params)
		return h.Execute(t.Context(), h.client(), r)
	}
	got, err := operate(ExecuteRequest{}, map[string]any{"operation": "get_status", "thread_id": "t-1"})
	if got != "operated" || err != nil || h.threads.operate != "get_status" || h.threads.params != `{"thread_id":"t-1"}` {
		t.Errorf("got %v, %v: %s %s", got, err, h.threads.operate, h.threads.params)
	}
	for _, params := range []map[string]any{{}, {"operation": "explode"}} {
		got, err = operate(ExecuteRequest{}, params)
		wantFault(t, got, err, tool.CodeBadArguments, "get_status, resume_thread, wait_threads")
	}
	got, err = operate(ExecuteRequest{}, map[string]any{"operation": 1})
	wantFault(t, got, err, tool.CodeBadArguments, "operation")
	got, err = operate(ExecuteRequest{DryRun: true}, map[string]any{"operation": "get_status"})
	wantFault(t, got, err, tool.CodeUnsupported, "parameters only")
	got, err = h.Execute(t.Context(), h.holder("rye.execute.tool.rye.bash"), ExecuteRequest{ItemID: OrchestratorID})
	wantFault(t, got, err, tool.CodePermissionDenied, "rye.execute.tool.rye.agent.threads.orchestrator")
}

func TestToolsOfACaller(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tools, err := tool.NewRegistry(h.Tools(h.client())...)
	if err != nil {
		t.Fatal(err)
	}
	execute, _ := tools.Get("rye_execute")
	got, err := execute.Call(t.Context(), tool.Env{Project: h.project}, object(t, map[string]any{
		"item_type": "tool", "item_id": "rye/file-system/read", "parameters": map[string]any{"path": "note.txt"}}).Raw())
	if err != nil || !strings.Contains(string(object(t, got)), "|one") {
		t.Errorf("got %v, %v", got, err)
	}
	for _, args := range []string{`{}`, `{"item_id":"x","resume_thread":"t"}`, `{"item_id":"x","parameters":"[]"}`, `{"item_id":"x","thread":"both"}`} {
		got, err := execute.Call(t.Context(), tool.Env{}, []byte(args))
		wantFault(t, got, err, tool.CodeBadArguments, "")
	}
}

// The directions say what holds in a thread only, and the bound counts for the
// whole text.
func TestInlineIsComposed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	request := ExecuteRequest{ItemID: "test/hello", Parameters: object(t, map[string]any{"who": "Ada"})}
	h.composed = &Composed{
		Body: "context and text", Capabilities: []string{"rye.fetch.*"}, HasHooks: true, Warnings: []string{"mind this"},
		Inheritance: Inheritance{
			ExtendsChain: []tool.Link{{ItemID: "test/hello"}, {ItemID: "base"}}, CapabilitiesFrom: "base",
			Context: []ContextItem{{ItemID: "rules", Position: "before"}},
		},
	}
	got, err := h.Execute(t.Context(), h.client(), request)
	if err != nil {
		t.Fatal(err)
	}
	d := got.(*InlineDirective)
	if d.Body != h.composed.Body || len(d.Warnings) != 1 || d.Warnings[0] != "mind this" {
		t.Errorf("got %+v", d)
	}
	for _, words := range []string{
		"directive hello and the context", "greeting (string): what was said", "no more than rye.fetch.*", "limits do not hold", "hooks do not run",
	} {
		if !strings.Contains(d.YourDirections, words) {
			t.Errorf("the directions lack %q: %s", words, d.YourDirections)
		}
	}
	dry := request
	dry.DryRun = true
	got, err = h.Execute(t.Context(), h.client(), dry)
	if err != nil {
		t.Fatal(err)
	}
	plan := got.(*DryRun)
	if raw := string(object(t, plan.Plan)); !strings.Contains(raw, `"capabilities":["rye.fetch.*"]`) ||
		!strings.Contains(raw, `"capabilities_from":"base"`) || !strings.Contains(raw, `"context":[{"item_id":"rules"`) {
		t.Errorf("plan %s", raw)
	}
	h.composed.Body = strings.Repeat("\n", maxText/2+1) // two bytes each, as JSON
	for _, r := range []ExecuteRequest{request, dry} {
		got, err = h.Execute(t.Context(), h.client(), r)
		wantFault(t, got, err, tool.CodeUnsupported, "more than one answer can carry")
	}
	plain := newHouse(t)
	got, err = plain.Execute(t.Context(), plain.client(), request)
	if err != nil {
		t.Fatal(err)
	}
	if text := got.(*InlineDirective).YourDirections; strings.Contains(text, "context") || strings.Contains(text, "hooks") || strings.Contains(text, "no more than") {
		t.Errorf("directions of a plain one: %s", text)
	}
}
