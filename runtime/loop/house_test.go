package loop

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/llmtest"
	"github.com/rye-mcp/rye-mcp/runtime/llm/scripted"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/spaces/trust/trusttest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// house is a project with everything a thread needs, and a scripted provider.
type house struct {
	t        testing.TB
	project  string
	user     string // the user space
	store    *sqlite.Store
	key      *sign.Key
	finisher *finish.Finisher
	tools    *testTools
	threads  *fakeThreads
	server   *scripted.Server
	settings Settings
	provider string // the YAML of the provider, without api and base_url
	stopped  []thread.ID
	change   func(*run) // before it runs
	maker    *maker     // nil: threads cannot hand over
	mode     trust.Mode // off unless a test says otherwise
	makeRoom func()     // on a full disk; nil: there is none
}

// prices are dollars per million tokens: input 1, output 2.
const plainProvider = `
models:
  small: {context_window: 200000, max_output_tokens: 4000, input: 1, output: 2, cache_read: 0.1, cache_write: 1.25}
  second: {context_window: 200000, max_output_tokens: 4000, input: 1, output: 2}
  unpriced: {context_window: 200000}
`

func newHouse(t testing.TB) *house {
	t.Helper()
	key, err := sign.Generate(t.TempDir(), false, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return openHouse(t, t.TempDir(), key)
}

// home is where the threads are.
func (h *house) home() folder.Home {
	return folder.Home{Dir: filepath.Join(h.project, ".ai", "state", "threads"), Seal: h.seal()}
}

func (h *house) seal() *place.Seal { return placetest.Seal(h.key) }

// openHouse is the house of a project that may be there already.
func openHouse(t testing.TB, project string, key *sign.Key) *house {
	t.Helper()
	h := &house{
		t: t, project: project, user: project + "-user", key: key, threads: &fakeThreads{}, provider: plainProvider, mode: trust.Off,
		settings: Settings{ToolConcurrency: 4, Retry: config.Retry{MaxAttempts: 3, BaseSeconds: 1e-6, MaxSeconds: 1e-6},
			OnLimit: config.OnLimit{Action: item.OnLimitStop, DeadlineSeconds: 1e-6, Default: config.OnLimitDefaultFinish}},
	}
	h.settings.Continuation = config.Continuation{TriggerThreshold: 0.9, ResumeCeilingTokens: 16_000, SummaryMaxTokens: 4000, MaxChain: 20}
	h.settings.Notes = config.Notes{PerTurn: 3, BytesPerTurn: 100, Ends: true}
	h.settings.Results = config.Results{MaxChars: 2400, MaxCharsWhenFull: 1200, PageChars: 24_000}
	h.settings.ErrorRules = config.New(h.roots()).Read().ErrorRules
	h.settings.Hooks = func() (hook.Set, []string, error) { return hook.Load(config.New(h.roots()).Read(), nil) }
	h.tools = newTestTools()
	var err error
	if h.store, err = sqlite.Open(t.Context(), h.home().Dir, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.store.Close() })
	h.finisher = &finish.Finisher{Store: h.store, Records: records.Local{Home: h.home().Always()}, Now: time.Now}
	return h
}

// script serves a script as the provider "fake".
func (h *house) script(text string) {
	h.t.Helper()
	parsed, err := scripted.Parse("test.yaml", []byte(text))
	if err != nil {
		h.t.Fatal(err)
	}
	server, err := scripted.Serve(context.Background(), parsed, scripted.Options{Record: true})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		llmtest.Accepted(h.t, server.Requests())
		_ = server.Close()
	})
	h.server = server
	h.serveAt(server.BaseURL())
}

func (h *house) serveAt(url string) {
	h.write(".ai/config/agent/providers/fake.yaml", "api: anthropic\nbase_url: "+url+h.provider)
}

func (h *house) write(name, content string) {
	h.t.Helper()
	h.writeAt(h.project, name, content)
	if strings.HasPrefix(name, ".ai/config/") {
		trusttest.AcceptSettings(h.t, h.roots())
	}
}

func (h *house) writeAt(dir, name, content string) {
	h.t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// job is a thread to be run.
type job struct {
	outputs      string // XML
	onLimit      string // of the directive
	fallback     string
	effort       string
	model        string // "fake/small" when empty
	limits       func(*thread.Limits)
	capabilities []string // all test tools when nil
	kind         thread.Kind
	inputs       map[string]any
	declared     string // further inputs, XML
	tool         string // of a tool run
	unbudgeted   bool
	meta         func(*thread.Meta)
}

const directive = "# Task\n\n```xml\n<directive name=\"task\" version=\"1.0.0\">\n<metadata>\n<description>A task</description>\n" +
	"<category>test</category>\n<author>us</author>\n<model tier=\"general\" FALLBACK/>\n<limits ON_LIMIT/>\n</metadata>\n" +
	"<inputs><input name=\"who\" type=\"string\" default=\"nobody\">whom</input>INPUTS</inputs>\n" +
	"<outputs>OUTPUTS</outputs>\n</directive>\n```\n\nDo the task for {input:who}.\n"

// register does what the spawner does: row, budget, folder, thread.json.
func (h *house) register(j job) thread.ID {
	h.t.Helper()
	text := strings.NewReplacer("FALLBACK", attribute("fallback", j.fallback)+" "+attribute("effort", j.effort), "ON_LIMIT", attribute("on_limit", j.onLimit), "OUTPUTS", j.outputs, "INPUTS", j.declared).Replace(directive)
	h.write(".ai/directives/test/task.md", text)
	found, err := h.resolver().Find(item.Directive, "test/task")
	if err != nil {
		h.t.Fatal(err)
	}
	kind, id := cmp.Or(j.kind, thread.KindDirective), cmp.Or(j.tool, "test/task")
	inputs := j.inputs
	if inputs == nil {
		inputs = map[string]any{"who": "nobody"}
	}
	n := store.NewThread{Kind: kind, Directive: id, Model: cmp.Or(j.model, "fake/small"), Now: time.Now()}
	rec, _, err := store.Register(h.t.Context(), h.store, n, func(id thread.ID) error {
		return folder.Of(h.home().Dir, id).Make()
	})
	if err != nil {
		h.t.Fatal(err)
	}
	m := thread.Meta{
		ThreadID: rec.ThreadID, Kind: kind, Directive: id, DirectiveHash: found.Hash, Status: rec.Status,
		CreatedAt: rec.CreatedAt, Model: rec.Model, Inputs: inputs, Capabilities: j.capabilities,
		Limits: thread.Limits{Turns: 10, Tokens: 1_000_000, Spend: 1_000_000, DurationSeconds: 600, Spawns: 5, Depth: 2},
	}
	if m.Capabilities == nil {
		m.Capabilities = []string{"rye.execute.tool.test.*"}
	}
	if j.limits != nil {
		j.limits(&m.Limits)
	}
	if j.meta != nil {
		j.meta(&m)
	}
	if !j.unbudgeted {
		if err := h.store.OpenRoot(h.t.Context(), rec.ThreadID, m.Limits.Spend, time.Now()); err != nil {
			h.t.Fatal(err)
		}
	}
	if err := h.folder(rec.ThreadID).WriteMeta(m, h.seal()); err != nil {
		h.t.Fatal(err)
	}
	return rec.ThreadID
}

func attribute(name, value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf("%s=%q", name, value)
}

func (h *house) folder(id thread.ID) folder.Folder { return folder.Of(h.home().Dir, id) }

func (h *house) messages(id thread.ID) ([]llm.Message, error) {
	of := h.finisher.Records.Of(id)
	return transcript.Messages(of.Transcript(), of.Artifacts())
}

func (h *house) roots() resolve.Roots {
	return resolve.Roots{Project: h.project, User: h.user, System: system.FS()}
}

func (h *house) resolver() *resolve.Resolver { return resolve.New(h.roots()) }

func (h *house) deps(id thread.ID) Deps {
	h.t.Helper()
	w, err := h.finisher.OpenTranscript(id, "")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = w.Close() })
	tools, err := executor.New(h.tools.all()...)
	if err != nil {
		h.t.Fatal(err)
	}
	resolver := h.resolver()
	gate := &trust.Gate{
		Roots: h.roots(), Shipped: system.Has, Own: func() (*sign.PublicKey, error) { return h.key.Public(), nil },
		Settings: func() (trust.Settings, error) { return trust.Settings{Mode: h.mode}, nil },
	}
	d := Deps{
		ID: id, Project: h.project, Process: thread.Process{PID: os.Getpid(), Host: "here"}, Store: h.store, Runner: h.store.Runner(id, ""), Finisher: h.finisher, Transcript: w,
		Resolver: resolver, Trust: gate, Executor: tools, Providers: provider.NewSource(func(string) string { return "" }).With(config.New(h.roots()).Read()),
		Actions: action.New(action.Deps{
			Resolver: resolver, Trust: gate, Executor: tools, Threads: h.threads, Now: time.Now,
			Search: func(context.Context, search.Query) (search.Page, error) { return search.Page{}, nil },
			Key:    func() (*sign.Key, error) { return nil, sign.ErrNoKey },
		}),
		StopChildren: func(_ context.Context, id thread.ID) error {
			h.stopped = append(h.stopped, id)
			return nil
		},
		Settings: h.settings, Now: time.Now, Log: zerolog.Nop(),
	}
	if h.maker != nil {
		d.Successors = h.maker
	}
	return d
}

// end runs a registered thread and checks what must hold however it ended.
func (h *house) end(ctx context.Context, id thread.ID) thread.Record {
	h.t.Helper()
	r := newRun(h.deps(id))
	if h.change != nil {
		h.change(r)
	}
	rec, err := r.toEnd(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := r.Transcript.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.checkConversation(r)
	h.checkAgreement(context.WithoutCancel(ctx), rec)
	if stopped := len(h.stopped) > 0; stopped != (rec.Status != thread.Completed && rec.Status != thread.Continued) {
		h.t.Errorf("%s, children stopped: %v", rec.Status, stopped)
	}
	return rec
}

func (h *house) run(j job) thread.Record {
	h.t.Helper()
	return h.end(h.t.Context(), h.register(j))
}

// checkConversation: the messages that were sent are those the transcript
// gives, but for results that ended the thread.
func (h *house) checkConversation(r *run) {
	h.t.Helper()
	rebuilt, err := h.messages(r.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	if extra := len(rebuilt) - len(r.conversation.messages); extra < 0 || extra > 1 {
		h.t.Fatalf("%d messages in memory, %d in the transcript", len(r.conversation.messages), len(rebuilt))
	}
	for i, m := range r.conversation.messages {
		inMemory, errA := json.Marshal(transcript.Blocks(m.Blocks))
		onDisk, errB := json.Marshal(transcript.Blocks(rebuilt[i].Blocks))
		if err := errors.Join(errA, errB); err != nil {
			h.t.Fatal(err)
		}
		if m.Role != rebuilt[i].Role || string(inMemory) != string(onDisk) {
			h.t.Errorf("message %d:\n in memory  %s %s\n transcript %s %s", i, m.Role, inMemory, rebuilt[i].Role, onDisk)
		}
	}
}

// checkAgreement: row, ledger, thread.json and transcript tell the same, and
// the transcript verifies to its last byte.
func (h *house) checkAgreement(ctx context.Context, rec thread.Record) {
	h.t.Helper()
	meta, err := h.folder(rec.ThreadID).ReadMeta(h.seal())
	if err != nil {
		h.t.Fatal(err)
	}
	path := h.folder(rec.ThreadID).Transcript()
	outcome, cost, err := transcript.LastOutcome(records.File(path))
	if err != nil || outcome == nil {
		h.t.Fatalf("no outcome in the transcript: %v", err)
	}
	if meta.Status != rec.Status || outcome.State != rec.Status || meta.Cost != rec.Cost || *cost != rec.Cost {
		h.t.Errorf("row %s %+v, thread.json %s %+v, transcript %s %+v",
			rec.Status, rec.Cost, meta.Status, meta.Cost, outcome.State, *cost)
	}
	if _, err := transcript.Verify(records.File(path), h.key, meta.Transcript); err != nil {
		h.t.Error(err)
	}
	budget, err := h.store.Budget(ctx, rec.ThreadID)
	if errors.Is(err, store.ErrNoBudget) {
		return
	}
	if err != nil || budget.Active || budget.Own != rec.Cost.Spend || budget.Actual > budget.MaxSpend {
		h.t.Errorf("budget %+v, row %+v, %v", budget, rec.Cost, err)
	}
}

// events are the payloads of one type.
func events[T any](h *house, id thread.ID, typ thread.EventType) []T {
	h.t.Helper()
	var all []T
	for e, err := range transcript.Events(records.File(h.folder(id).Transcript())) {
		if err != nil {
			h.t.Fatal(err)
		}
		if e.Type != typ {
			continue
		}
		payload, err := transcript.Decode[T](e)
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, payload)
	}
	return all
}

// results are the results of tools in the order they came in.
func (h *house) results(id thread.ID) []transcript.ToolCallResult {
	h.t.Helper()
	return events[transcript.ToolCallResult](h, id, thread.EventToolCallResult)
}

// asked are the last messages of all requests, in order.
func (h *house) asked() []string {
	var all []string
	for _, r := range h.server.Requests() {
		all = append(all, r.Last)
	}
	return all
}

// testTools are tools that misbehave in known ways.
type testTools struct {
	began   chan string   // a tool that waits says that it has begun
	release chan struct{} // closed to let it go on
	big     string
	act     func() error // what test/act does before its big answer
	more    []tool.Tool

	mu      sync.Mutex
	running int
	most    int
}

func newTestTools() *testTools {
	return &testTools{began: make(chan string, 100), release: make(chan struct{}), big: strings.Repeat("é<line>\n", 10_000)}
}

type word struct {
	Word string `json:"word,omitempty"`
}

func (tt *testTools) all() []tool.Tool {
	def := func(name string) tool.Definition { return tool.Definition{ID: "test/" + name, Description: name} }
	return append([]tool.Tool{
		tool.New(def("echo"), func(_ context.Context, _ tool.Env, in word) (any, error) { return in, nil }),
		tool.New(def("fail"), func(context.Context, tool.Env, struct{}) (any, error) { return nil, errors.New("disk full") }),
		tool.New(def("panic"), func(context.Context, tool.Env, struct{}) (any, error) { panic("lost") }),
		tool.New(def("big"), func(context.Context, tool.Env, struct{}) (any, error) { return tt.big, nil }),
		tool.New(def("number"), func(context.Context, tool.Env, struct{}) (any, error) {
			return map[string]int64{"n": 1<<60 + 1}, nil
		}),
		tool.New(def("wait"), tt.wait),
		tool.New(def("stubborn"), func(ctx context.Context, env tool.Env, in word) (any, error) {
			return tt.wait(context.WithoutCancel(ctx), env, in)
		}),
		tool.New(def("act"), func(context.Context, tool.Env, struct{}) (any, error) { return tt.big, tt.act() }),
		rawPanic{},
	}, tt.more...)
}

// wait ends with its context, or when it is released.
func (tt *testTools) wait(ctx context.Context, _ tool.Env, in word) (any, error) {
	tt.mu.Lock()
	tt.running++
	tt.most = max(tt.most, tt.running)
	tt.mu.Unlock()
	defer func() {
		tt.mu.Lock()
		tt.running--
		tt.mu.Unlock()
	}()
	tt.began <- in.Word
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-tt.release:
		return in, nil
	}
}

// rawPanic is a tool that was not made by tool.New.
type rawPanic struct{}

func (rawPanic) Definition() tool.Definition {
	return tool.Definition{ID: "test/raw", Description: "raw", Schema: json.RawMessage(`{"type":"object"}`)}
}

func (rawPanic) Call(context.Context, tool.Env, json.RawMessage) (any, error) { panic("raw") }

// fakeThreads stands for the orchestrator.
type fakeThreads struct {
	mu      sync.Mutex
	callers []action.Caller
	starts  []action.StartRequest
	child   func(context.Context, action.Caller, action.StartRequest) (any, error) // nil: one that is never heard of again
}

func (f *fakeThreads) Start(ctx context.Context, c action.Caller, r action.StartRequest) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.callers, f.starts = append(f.callers, c), append(f.starts, r)
	if f.child != nil {
		return f.child(ctx, c, r)
	}
	c.Started("test/child-1", r.Directive)
	return map[string]any{"thread_id": "test/child-1"}, nil
}

func (f *fakeThreads) Plan(context.Context, action.Caller, action.StartRequest) (any, error) {
	return nil, errors.New("not asked for")
}

func (f *fakeThreads) StartTool(context.Context, action.Caller, action.ToolRequest) (any, error) {
	return nil, errors.New("not asked for")
}

func (f *fakeThreads) Operate(context.Context, action.Caller, string, tool.Object) (any, error) {
	return nil, errors.New("not asked for")
}

func (f *fakeThreads) Orchestrator() (tool.Definition, error) {
	return tool.Definition{ID: action.OrchestratorID, Description: "operates", Schema: json.RawMessage(`{"type":"object"}`)}, nil
}

func (f *fakeThreads) Names() []string { return nil }

func (f *fakeThreads) Runs(context.Context, thread.ID) (string, error) {
	return "", errors.New("not asked for")
}

// contains reports whether any of the texts contains part.
func contains(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, part) })
}

// addFiles adds every file of the project, by its path.
func (h *house) addFiles(texts map[string]string) error {
	return filepath.WalkDir(h.project, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		texts[path] = string(data)
		return err
	})
}
