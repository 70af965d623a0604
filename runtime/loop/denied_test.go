package loop

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type strictInput struct {
	Path  string `json:"path"`
	Lines int    `json:"lines,omitempty" minimum:"1"`
	Mode  string `json:"mode,omitempty" enum:"fast,slow"`
}

// Arguments are checked against the tool's schema before it runs, in either
// way a model can call it, and the model is told what is valid.
func TestArgumentsAreChecked(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct{ arguments, says string }{
		"undeclared":      {`{"path": "x", "as_root": true}`, `unknown property "as_root", valid are "lines", "mode", "path"`},
		"nearly declared": {`{"path": "x", "line": 1}`, `unknown property "line", did you mean "lines"`},
		"another case":    {`{"Path": "x"}`, `missing property "path"`},
		"missing":         {`{}`, `missing property "path"`},
		"null":            {`{"path": null}`, `"path" must be string, got null`},
		"type":            {`{"path": ["x", "y"]}`, `"path" must be string, got array`},
		"range":           {`{"path": "x", "lines": 0}`, `"lines"`},
		"not of the list": {`{"path": "x", "mode": "root"}`, `"mode" must be one of "fast", "slow", got "root"`},
		"a list":          {`["x"]`, "must be a JSON object, got array"},
		"a huge number":   {`{"path": "x", "lines": 1e999999}`, "out of range"},
	} {
		for _, way := range []string{"native", "text"} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				body := callStrict(t, way, c.arguments)
				if body.Code != "bad_arguments" || !strings.Contains(body.Error, c.says) {
					t.Errorf("%+v, want %s", body, c.says)
				}
			})
		}
	}
}

// answerBody is what a model is told about a call that failed.
type answerBody struct {
	Code  string
	Error string
}

// callStrict calls test/strict in one of the ways there are. It fails the test
// when the tool ran.
func callStrict(t *testing.T, way, arguments string) answerBody {
	t.Helper()
	h := newHouse(t)
	h.tools.more = []tool.Tool{tool.New(tool.Definition{ID: "test/strict", Description: "strict"},
		func(context.Context, tool.Env, strictInput) (any, error) {
			t.Errorf("the tool ran with %s", arguments)
			return nil, nil
		})}
	quoted, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	switch way {
	case "native":
		h.script(once("{name: test_strict, input_json: " + string(quoted) + "}"))
	case "text":
		h.provider += "tool_use: text\n"
		text, err := json.Marshal("```json\n{\"tool\": \"test_strict\", \"arguments\": " + arguments + "}\n```")
		if err != nil {
			t.Fatal(err)
		}
		h.script("turns:\n  - {match: {turn: 1}, text: " + string(text) + "}\n  - {text: done}\n")
	}
	rec := h.run(job{})
	results := h.results(rec.ThreadID)
	if rec.Status != thread.Completed || len(results) != 1 || !results[0].IsError {
		t.Fatalf("%s %+v", rec.Status, results)
	}
	return bodyOf(t, results[0])
}

func bodyOf(t *testing.T, r transcript.ToolCallResult) answerBody {
	t.Helper()
	var body answerBody
	if err := json.Unmarshal([]byte(r.Text), &body); err != nil {
		t.Fatal(err)
	}
	return body
}

// A denial names the capability, and which of the sets lacks it.
func TestDenialsNameWhatIsMissing(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const echo, read = "{name: test_echo}", "{name: rye_execute, input: {item_type: tool, item_id: rye/file-system/read, parameters: {path: x}}}"
	for name, c := range map[string]struct {
		call    string
		own     string
		ceiling [][]string
		says    string
	}{
		"own":                  {echo, "rye.sign.*", nil, "this thread lacks the capability rye.execute.tool.test.echo"},
		"own, by id":           {read, "rye.execute.tool.test.*", nil, "this thread lacks the capability rye.execute.tool.rye.file-system.read"},
		"the parent's":         {echo, "rye.*", [][]string{{"rye.sign.*"}, {"rye.*"}}, "the parent of this thread lacks the capability rye.execute.tool.test.echo"},
		"the parent's, by id":  {read, "rye.*", [][]string{{"rye.execute.tool.test.*"}}, "the parent of this thread lacks the capability rye.execute.tool.rye.file-system.read"},
		"the grandparent's":    {echo, "rye.*", [][]string{{"rye.*"}, {}}, "an ancestor of this thread, 2 levels up, lacks the capability rye.execute.tool.test.echo"},
		"a directive's":        {"{name: rye_execute, input: {item_id: test/task}}", "rye.execute.tool.test.*", nil, "this thread lacks the capability rye.execute.directive.test.task"},
		"an item's, to read":   {"{name: rye_fetch, input: {item_id: test/task}}", "rye.fetch.tool.*", nil, "this thread lacks the capability rye.fetch.directive.test.task"},
		"an item's, to search": {"{name: rye_search, input: {query: x, scope: directive}}", "rye.fetch.tool.*", nil, "this thread lacks the capability rye.search.directive.*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.script(once(c.call))
			rec := h.run(job{capabilities: []string{c.own}, meta: func(m *thread.Meta) { m.Ceiling = c.ceiling }})
			results := h.results(rec.ThreadID)
			if len(results) != 1 {
				t.Fatalf("%+v", results)
			}
			if body := bodyOf(t, results[0]); body.Code != "permission_denied" || body.Error != "permission denied: "+c.says {
				t.Errorf("%+v, want %s", body, c.says)
			}
		})
	}
}
