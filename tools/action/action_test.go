package action

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/builtin/file"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// fakeThreads stands for the orchestrator and remembers what it was asked.
type fakeThreads struct {
	start   *StartRequest
	plan    *StartRequest
	run     *ToolRequest
	operate string
	params  string
}

func (f *fakeThreads) Start(_ context.Context, _ Caller, r StartRequest) (any, error) {
	f.start = &r
	return "started", nil
}

func (f *fakeThreads) Plan(_ context.Context, _ Caller, r StartRequest) (any, error) {
	f.plan = &r
	return "planned", nil
}

func (f *fakeThreads) StartTool(_ context.Context, _ Caller, r ToolRequest) (any, error) {
	f.run = &r
	return "running", nil
}

func (f *fakeThreads) Operate(_ context.Context, _ Caller, operation string, params tool.Object) (any, error) {
	if known := []string{"get_status", "resume_thread", "wait_threads"}; !slices.Contains(known, operation) {
		return nil, tool.Faultf(tool.CodeBadArguments, "operation %q is not known; valid are %s", operation, strings.Join(known, ", "))
	}
	f.operate, f.params = operation, string(params)
	return "operated", nil
}

func (f *fakeThreads) Orchestrator() (tool.Definition, error) {
	return tool.Definition{ID: OrchestratorID, Schema: json.RawMessage(`{"type":"object"}`)}, nil
}

func (f *fakeThreads) Names() []string { return []string{"wait_threads"} }

func (f *fakeThreads) Runs(context.Context, thread.ID) (string, error) { return "", nil }

// house is a project, a user space and the shipped system space with actions
// over them.
type house struct {
	*Actions
	t       *testing.T
	project string
	user    string
	threads *fakeThreads
	trust   trust.Settings // off unless a test says otherwise
	// composed is what every directive is composed to; nil: its own text alone.
	composed *Composed
}

const helloDirective = "# Hello\n\n```xml\n<directive name=\"hello\" version=\"1.0.0\">\n<metadata>\n<description>Says hello</description>\n" +
	"<category>test</category>\n<author>us</author>\n<model tier=\"fast\"/>\n<limits turns=\"3\"/>\n" +
	"<permissions><execute><tool>rye/file-system/*</tool></execute></permissions>\n</metadata>\n" +
	"<inputs><input name=\"who\" type=\"string\" required=\"true\">whom to greet</input>\n" +
	"<input name=\"times\" type=\"integer\" default=\"2\">how often</input></inputs>\n" +
	"<outputs><output name=\"greeting\" type=\"string\" required=\"true\">what was said</output></outputs>\n" +
	"</directive>\n```\n\nGreet {input:who} {input:times} times.\n"

const factsKnowledge = "<!-- rye:unsigned -->\n\n```yaml\nname: facts\ntitle: Some Facts\nversion: 1.0.0\ncategory: test\nentry_type: reference\n```\n\nWater is wet.\n"

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, project: t.TempDir(), user: t.TempDir(), threads: &fakeThreads{}, trust: trust.Settings{Mode: trust.Off}}
	h.put(h.project, "directives/test/hello.md", helloDirective)
	h.put(h.project, "knowledge/test/facts.md", factsKnowledge)
	h.put(h.project, "tools/test/script.py", "\"\"\"Does something.\"\"\"\n__executor_id__ = 'x'\n")
	h.put(h.project, "note.txt", "one\n")

	tools, err := executor.New(append(file.Tools(file.Deps{}), failingTools()...)...)
	if err != nil {
		t.Fatal(err)
	}
	resolver := resolve.New(resolve.Roots{Project: h.project, User: h.user, System: os.DirFS("../../spaces/system/ai")})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h.Actions = New(Deps{
		Trust: &trust.Gate{
			Roots: resolver.Roots(), Shipped: system.Has, Own: h.ownKey,
			Settings: func() (trust.Settings, error) { return h.trust, nil },
		},
		Resolver: resolver, Search: h.lazySearch(resolver), Executor: tools, Threads: h.threads,
		Key:     func() (*sign.Key, error) { return sign.Load(h.user) },
		Now:     func() time.Time { now = now.Add(time.Millisecond); return now },
		Compose: h.compose,
	})
	return h
}

// compose stands for the orchestrator.
func (h *house) compose(_ context.Context, _ thread.ID, found *resolve.Found, values map[string]any) (*Composed, error) {
	doc, err := found.Directive()
	if err != nil || h.composed == nil {
		return &Composed{Body: inputs.Body(doc, values, nil)}, err
	}
	return h.composed, nil
}

func (h *house) ownKey() (*sign.PublicKey, error) {
	key, err := sign.Load(h.user)
	if errors.Is(err, sign.ErrNoKey) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return key.Public(), nil
}

// lazySearch opens the index for the first search; most tests have none.
func (h *house) lazySearch(resolver *resolve.Resolver) func(context.Context, search.Query) (search.Page, error) {
	open := sync.OnceValues(func() (*search.Index, error) { return search.Open(context.WithoutCancel(h.t.Context()), "", resolver) })
	return func(ctx context.Context, q search.Query) (search.Page, error) {
		index, err := open()
		if err != nil {
			return search.Page{}, err
		}
		h.t.Cleanup(func() { _ = index.Close() })
		return index.Search(ctx, q)
	}
}

func failingTools() []tool.Tool {
	fail := func(id string, err error) tool.Tool {
		return tool.New(tool.Definition{ID: id}, func(context.Context, tool.Env, struct{}) (any, error) { return nil, err })
	}
	return []tool.Tool{
		fail("test/fails", errors.New("disk full")),
		fail("test/stopped", context.Canceled),
		tool.New(tool.Definition{ID: "test/panics"}, func(context.Context, tool.Env, struct{}) (any, error) { panic("lost") }),
	}
}

// put writes a file: an item below .ai, or a plain one when its name has no folder.
func (h *house) put(space, name, content string) {
	h.t.Helper()
	full := filepath.Join(space, ".ai", name)
	if !strings.Contains(name, "/") {
		full = filepath.Join(space, name)
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o640); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) item(space, name string) string {
	h.t.Helper()
	data, err := os.ReadFile(filepath.Join(space, ".ai", name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(data)
}

func (h *house) makeKey() *sign.Key {
	h.t.Helper()
	seed := sha256.Sum256([]byte(h.t.Name()))
	key, err := sign.Generate(h.user, false, strings.NewReader(string(seed[:])))
	if err != nil {
		h.t.Fatal(err)
	}
	return key
}

// client is a caller outside threads.
func (h *house) client() Caller { return Caller{Env: tool.Env{Project: h.project}} }

// holder is a thread that holds exactly these capabilities.
func (h *house) holder(capabilities ...string) Caller {
	return Caller{Env: tool.Env{Project: h.project, ThreadID: "t-1"}, InThread: true, Allow: func(c string) error {
		if slices.Contains(capabilities, c) {
			return nil
		}
		return tool.Faultf(tool.CodePermissionDenied, "missing %s", c).With("missing_capability", c)
	}}
}

// thread is a thread that may do everything.
func (h *house) thread() Caller {
	c := h.holder()
	c.Allow = func(string) error { return nil }
	return c
}

func object(t *testing.T, v any) tool.Object {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// wantFault checks code and words of a refusal and returns its details.
func wantFault(t *testing.T, result any, err error, code tool.Code, words string) map[string]any {
	t.Helper()
	f, ok := errors.AsType[*tool.Fault](err)
	if !ok {
		t.Errorf("got %v, %v; want %s", result, err, code)
		return nil
	}
	if f.Code != code || !strings.Contains(f.Message+" "+f.Hint, words) {
		t.Errorf("got %s: %s (%s); want %s with %q", f.Code, f.Message, f.Hint, code, words)
	}
	if v := reflect.ValueOf(result); result != nil && (v.Kind() != reflect.Pointer || !v.IsNil()) {
		t.Errorf("a refusal with the result %v", result)
	}
	return f.Details
}

// The table of the specification, for every combination.
func TestExecuteTable(t *testing.T) {
	t.Parallel()
	const (
		directive = "directive test/hello"
		aTool     = "tool rye/file-system/read"
		knowledge = "knowledge test/facts"
	)
	outcomes := map[string][]string{ // by item and thread: neither, dry_run, async, async and dry_run
		directive + " inline": {"*action.InlineDirective", "*action.DryRun", "nothing to detach", "nothing to detach"},
		directive + " fork":   {"started", "planned", "started async", "planned async"},
		aTool + " inline":     {"*action.ToolResult", "*action.DryRun", "running", "*action.DryRun"},
		aTool + " fork":       {"no conversation", "no conversation", "no conversation", "no conversation"},
		knowledge + " inline": {"*action.KnowledgeResult", "*action.DryRun", "comes back at once", "comes back at once"},
		knowledge + " fork":   {"nothing to run", "nothing to run", "nothing to run", "nothing to run"},
	}
	parameters := map[string]any{
		directive: map[string]any{"who": "Ada"}, aTool: map[string]any{"path": "note.txt"}, knowledge: map[string]any{},
	}
	for _, what := range slices.Sorted(maps.Keys(parameters)) {
		for _, thread := range []string{"", ThreadInline, ThreadFork} {
			for n := range 8 {
				dry, async, inThread := n&1 != 0, n&2 != 0, n&4 != 0
				effective := thread
				if thread == "" {
					effective = ThreadInline
					if what == directive && (async || inThread) {
						effective = ThreadFork
					}
				}
				want := outcomes[what+" "+effective][n&3]
				t.Run(fmt.Sprintf("%s/thread=%s,dry=%v,async=%v,inThread=%v", what, thread, dry, async, inThread), func(t *testing.T) {
					t.Parallel()
					h := newHouse(t)
					caller := h.client()
					if inThread {
						caller = h.thread()
					}
					kind, id, _ := strings.Cut(what, " ")
					got, err := h.Execute(t.Context(), caller, ExecuteRequest{
						ItemType: kind, ItemID: id, Thread: thread, DryRun: dry, Async: async, Parameters: object(t, parameters[what]),
					})
					if outcome := h.outcome(got, err); !strings.Contains(outcome, want) {
						t.Errorf("got %q, want %q", outcome, want)
					}
				})
			}
		}
	}
}

func (h *house) outcome(got any, err error) string {
	if err != nil {
		f := tool.AsFault(err)
		if f.Code != tool.CodeUnsupported || f.Hint == "" {
			h.t.Errorf("refused as %s with the hint %q", f.Code, f.Hint)
		}
		return f.Message
	}
	text, ok := got.(string)
	if !ok {
		return fmt.Sprintf("%T", got)
	}
	for _, r := range []*StartRequest{h.threads.start, h.threads.plan} {
		if r != nil && r.Async {
			text += " async"
		}
	}
	return text
}

func TestArgumentsOfForks(t *testing.T) {
	t.Parallel()
	wait := 3.0
	given := map[string]ExecuteRequest{
		"model":        {Model: "fast"},
		"limits":       {Limits: map[string]float64{"turns": 2}},
		"wait_seconds": {WaitSeconds: &wait},
		"request_key":  {RequestKey: "k"},
	}
	instead := map[string]string{
		"directive model":   `Use thread "fork"`,
		"tool wait_seconds": "stands in its parameters",
		"tool request_key":  "with async",
	}
	for name, r := range given {
		h := newHouse(t)
		r.ItemID, r.Parameters = "test/hello", object(t, map[string]any{"who": "Ada", "times": 9007199254740993})
		if got, err := h.Execute(t.Context(), h.client(), r); got != "started" || err != nil {
			t.Fatalf("%s makes no fork: %v, %v", name, got, err)
		}
		s := h.threads.start
		if s.Directive != "test/hello" || s.Model != r.Model || s.RequestKey != r.RequestKey || s.WaitSeconds != r.WaitSeconds ||
			s.Limits["turns"] != r.Limits["turns"] || s.Inputs["times"] != int64(9007199254740993) {
			t.Errorf("%s: got %+v", name, s)
		}
		for _, item := range []ExecuteRequest{
			{ItemType: "directive", ItemID: "test/hello", Thread: ThreadInline},
			{ItemType: "tool", ItemID: "rye/file-system/read"},
			{ItemType: "knowledge", ItemID: "test/facts"},
		} {
			item.Model, item.Limits, item.WaitSeconds, item.RequestKey = r.Model, r.Limits, r.WaitSeconds, r.RequestKey
			got, err := h.Execute(t.Context(), h.client(), item)
			wantFault(t, got, err, tool.CodeUnsupported, name)
			if words := instead[item.ItemType+" "+name]; words != "" {
				wantFault(t, got, err, tool.CodeUnsupported, words)
			}
		}
	}
	h := newHouse(t)
	got, err := h.Execute(t.Context(), h.client(), ExecuteRequest{ItemID: "test/hello", Async: true, WaitSeconds: &wait})
	wantFault(t, got, err, tool.CodeUnsupported, "nothing is waited for")
	_, err = h.Execute(t.Context(), h.client(), ExecuteRequest{
		ItemID: "rye/file-system/read", Async: true, RequestKey: "k", Parameters: object(t, map[string]any{"path": "x"})})
	if err != nil || h.threads.run == nil || h.threads.run.RequestKey != "k" || string(h.threads.run.Parameters) != `{"path":"x"}` {
		t.Errorf("background tool: %+v, %v", h.threads.run, err)
	}
}
