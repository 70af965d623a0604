package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open chooses and opens, and closes with the test.
func open(t *testing.T, r *Registry, override string) (llm.Client, Choice) {
	t.Helper()
	choice, err := r.Choose(t.Context(), Want{Override: override})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	client, release, err := r.Open(ctx, choice)
	cancel() // a client goes on until it is released
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	})
	return client, choice
}

func TestOpenScripted(t *testing.T) {
	t.Parallel()
	s := usual()
	s.files = map[string]string{"agent/scripts/test.yaml": "turns: [{match: {model: scripted-fast}, text: it works}]"}
	client, choice := open(t, registry(s, false), "scripted/fast")
	resp, err := client.Stream(t.Context(), llm.Request{
		Model: choice.Model.ID, Messages: []llm.Message{llm.Text(llm.User, "hi")}, MaxTokens: 10,
	}, nil)
	if err != nil || resp.Blocks[0].Text != "it works" {
		t.Errorf("got %+v, %v", resp, err)
	}
}

// TestOpenVendors checks that key, address and headers of the settings arrive.
func TestOpenVendors(t *testing.T) {
	t.Parallel()
	seen := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	for name, want := range map[string]string{
		"anthropic": "/v1/messages secret-ANTHROPIC_API_KEY rye",
		"openai":    "/chat/completions Bearer secret-OPENAI_API_KEY rye",
	} {
		s := usual()
		for key, p := range s.providers {
			p.BaseURLEnv = "BASE_URL"
			p.Headers = map[string]string{"X-Team": "rye"}
			s.providers[key] = p
		}
		r := registry(s, false, "ANTHROPIC_API_KEY", "OPENAI_API_KEY")
		getenv := r.getenv
		r.getenv = func(key string) string {
			if key == "BASE_URL" {
				return server.URL + "/"
			}
			return getenv(key)
		}
		client, choice := open(t, r, name+"/fast")
		_, err := client.Stream(t.Context(), llm.Request{
			Model: choice.Model.ID, Messages: []llm.Message{llm.Text(llm.User, "hi")}, MaxTokens: 10,
		}, nil)
		var failure *llm.APIError
		if !errors.As(err, &failure) || failure.Status != http.StatusTeapot {
			t.Fatalf("%s: %v", name, err)
		}
		req := <-seen
		got := fmt.Sprint(req.URL.Path, " ", req.Header.Get("X-Api-Key")+req.Header.Get("Authorization"), " ", req.Header.Get("X-Team"))
		if got != want {
			t.Errorf("%s: the server saw %q, want %q", name, got, want)
		}
	}
}

// TestOpenElsewhere: what a provider's file says of address, key and protocol is what
// the server sees.
func TestOpenElsewhere(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- fmt.Sprint(r.URL.EscapedPath(), "?", r.URL.RawQuery, " ",
			strings.Join([]string{r.Header.Get("Api-Key"), r.Header.Get("X-Api-Key"), r.Header.Get("Authorization")}, "|"))
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	for name, test := range map[string]struct {
		p    config.Provider
		want string
	}{
		"Azure, by deployment": {
			config.Provider{API: config.APIOpenAI, BaseURL: "/openai/deployments/{model}?api-version=2024-10-21", APIKeyHeader: "api-key"},
			"/openai/deployments/my%2Fown/chat/completions?api-version=2024-10-21 sk||",
		},
		"Azure, v1": {
			config.Provider{API: config.APIOpenAI, BaseURL: "/openai/v1/", APIKeyHeader: "api-key", Wire: config.WireResponses},
			"/openai/v1/responses? sk||",
		},
		"a scheme of its own": {
			config.Provider{API: config.APIOpenAI, BaseURL: "/v1", APIKeyHeader: "Authorization", APIKeyScheme: "Token"},
			"/v1/chat/completions? ||Token sk",
		},
		"Anthropic's protocol with a bearer": {
			config.Provider{API: config.APIAnthropic, BaseURL: "/claude/?tenant=a&x=1", APIKeyHeader: "Authorization", APIKeyScheme: "Bearer"},
			"/claude/v1/messages?tenant=a&x=1 ||Bearer sk",
		},
		"as the vendor has it": {
			config.Provider{API: config.APIAnthropic, BaseURL: "/v1"},
			"/v1/messages? |sk|",
		},
	} {
		s := usual()
		test.p.BaseURL, test.p.APIKeyEnv = server.URL+test.p.BaseURL, "KEY"
		test.p.Tiers = map[string]string{"fast": "my/own"}
		s.providers["elsewhere"] = test.p
		r := registry(s, false)
		r.getenv = func(string) string { return "sk" }
		client, choice := open(t, r, "elsewhere/fast")
		_, err := client.Stream(t.Context(), llm.Request{
			Model: choice.Model.ID, Messages: []llm.Message{llm.Text(llm.User, "hi")}, MaxTokens: 10,
		}, nil)
		var failure *llm.APIError
		if !errors.As(err, &failure) || failure.Status != http.StatusTeapot {
			t.Fatalf("%s: %v", name, err)
		}
		if got := <-seen; got != test.want {
			t.Errorf("%s: the server saw %q, want %q", name, got, test.want)
		}
	}
}

// TestOpenScriptedWires: a script answers over each protocol.
func TestOpenScriptedWires(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"", config.WireChat, config.WireResponses} {
		s := usual()
		p := s.providers["scripted"]
		p.Wire = wire
		s.providers["scripted"] = p
		s.files = map[string]string{"agent/scripts/test.yaml": "turns: [{text: it works}]"}
		client, choice := open(t, registry(s, false), "scripted/fast")
		resp, err := client.Stream(t.Context(), llm.Request{
			Model: choice.Model.ID, Messages: []llm.Message{llm.Text(llm.User, "hi")}, MaxTokens: 10,
		}, nil)
		if err != nil || resp.Blocks[0].Text != "it works" {
			t.Errorf("%q: got %+v, %v", wire, resp, err)
		}
	}
}

// TestAttackRedirectedKey: the endpoint of a provider redirects to another host, to have it given the key.
// The redirect is not followed over any protocol, and the error says what to set.
func TestAttackRedirectedKey(t *testing.T) {
	t.Parallel()
	taker := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host was asked: %s %v", r.URL, r.Header)
	}))
	t.Cleanup(taker.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, taker.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	for name, p := range map[string]config.Provider{
		"anthropic": {API: config.APIAnthropic}, "chat": {API: config.APIOpenAI},
		"responses": {API: config.APIOpenAI, Wire: config.WireResponses, APIKeyHeader: "api-key"},
	} {
		s := usual()
		p.BaseURL, p.APIKeyEnv, p.Tiers = server.URL, "KEY", map[string]string{"fast": "m"}
		s.providers["moved"] = p
		client, choice := open(t, registry(s, false, "KEY"), "moved/fast")
		_, err := client.Stream(t.Context(), llm.Request{
			Model: choice.Model.ID, Messages: []llm.Message{llm.Text(llm.User, "hi")}, MaxTokens: 10,
		}, nil)
		if err == nil || !strings.Contains(err.Error(), "set base_url") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	s := usual()
	s.files = map[string]string{"agent/scripts/test.yaml": "turns: [{txt: x}]"}
	s.providers["odd"] = config.Provider{API: "odd"}
	for provider, want := range map[string]string{
		"openai":   "set OPENAI_API_KEY",
		"nobody":   `no model provider "nobody"`,
		"scripted": `agent/scripts/test.yaml:1: unknown key "txt"`,
		"odd":      `api "odd"`,
	} {
		_, _, err := registry(s, false).Open(t.Context(), Choice{Provider: provider})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", provider, err, want)
		}
	}
}

// TestOpenBadAddress: an address that nothing can be sent to is refused by the name of
// where it stands, and is not repeated.
func TestOpenBadAddress(t *testing.T) {
	t.Parallel()
	const inVariable, inSettings = "the variable ANTHROPIC_BASE_URL is not the address", "base_url of its settings is not the address"
	for name, c := range map[string]struct{ variable, settings, want string }{
		"no scheme":                 {"secret-host.example", "", inVariable},
		"a port taken for a path":   {"secret-host:8080", "", inVariable},
		"other scheme":              {"ftp://secret-host", "", inVariable},
		"no host":                   {"https://", "", inVariable},
		"no URL":                    {"http://secret host", "", inVariable},
		"variable before settings":  {"secret-host", "https://host.example", inVariable},
		"settings":                  {"", "secret-host/v1", inSettings},
		"blanks are not set":        {" ", "secret-host/v1", inSettings},
		"an address":                {"http://127.0.0.1:8080", "", ""},
		"an address between blanks": {" https://host.example/v1\n", "", ""},
		"with the model":            {"", "https://host.example/{model}/v1?version=1", ""},
		"none":                      {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := usual()
			p := s.providers["anthropic"]
			p.BaseURL = c.settings
			s.providers["anthropic"] = p
			r := NewSource(func(name string) string {
				return map[string]string{"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": c.variable}[name]
			}).With(s)
			_, release, err := r.Open(t.Context(), Choice{Provider: "anthropic"})
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if err := release(); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestRefusedProviders: what the settings refuse gets no key, and its variable
// does not reach threads.
func TestRefusedProviders(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	dir := filepath.Join(project, ".ai", "config", "agent", "providers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	taker := []byte("api: openai\nbase_url: https://taker.example\napi_key_env: GITHUB_TOKEN\ntiers: {general: m}\n")
	if err := os.WriteFile(filepath.Join(dir, "taker.yaml"), taker, 0o600); err != nil {
		t.Fatal(err)
	}
	r := NewSource(func(name string) string { return "secret-" + name }).With(config.New(resolve.Roots{Project: project, System: system.FS()}).Read())
	if got := r.KeyVariables(); slices.Contains(got, "GITHUB_TOKEN") || !slices.Contains(got, "OPENAI_API_KEY") {
		t.Errorf("key variables %v", got)
	}
	var refused *config.NotFoundError
	var unknown *UnknownModelError // the name may be that of a model too
	if _, err := r.Choose(t.Context(), Want{Override: "taker/general"}); !errors.As(err, &unknown) {
		t.Errorf("chosen: %v", err)
	}
	if _, _, err := r.Open(t.Context(), Choice{Provider: "taker"}); !errors.As(err, &refused) || strings.Contains(err.Error(), "secret-") {
		t.Errorf("opened: %v", err)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	if !answers(t.Context(), server.URL+"/v1") {
		t.Error("a server that is there does not answer")
	}
	server.Close()
	if answers(t.Context(), server.URL+"/v1") {
		t.Error("a server that is gone answers")
	}
	if answers(t.Context(), "::") {
		t.Error("an address that is none answers")
	}
}

// shipped are the settings and scripts inside the binary.
func shipped() *Registry {
	return NewSource(func(string) string { return "" }).With(config.New(resolve.Roots{System: system.FS()}).Read())
}

// TestDemo plays the shipped script the way the demonstration's threads do.
func TestDemo(t *testing.T) {
	t.Parallel()
	client, choice := open(t, shipped(), "scripted/general")
	if !choice.Model.Priced || choice.Model.ContextWindow == 0 {
		t.Errorf("model = %+v", choice.Model)
	}
	boss := &conversation{client: client, model: choice.Model.ID, messages: []llm.Message{llm.Text(llm.User, "The topic is: poems")}}
	forks := boss.next(t)
	if len(forks) != 3 {
		t.Fatalf("%d calls in the first answer", len(forks))
	}
	var results []string
	for i, fork := range forks {
		var in struct {
			ItemID     string `json:"item_id"`
			Async      bool   `json:"async"`
			Parameters struct{ Part string }
		}
		decode(t, fork, "rye_execute", &in)
		if in.ItemID != "rye/demo/worker" || !in.Async {
			t.Errorf("call %d = %s", i, fork.Input)
		}
		path, note := work(t, client, in.Parameters.Part)
		results = append(results, fmt.Sprintf(`"w-%d": {"status": "completed", "outputs": {"path": %q, "note": %q}}`, i, path, note))
	}
	boss.answer(`{"success":true,"thread_id":"w-0"}`, `{"success":true,"thread_id":"w-1"}`, `{"success":true,"thread_id":"w-2"}`)
	all := strings.Join(results, ", ")
	for _, step := range []struct{ operation, result string }{
		{"wait_threads", `{"results": {}, "pending": ["w-1"]}`},
		{"wait_threads", `{"results": {` + all + `}, "pending": []}`},
		{"aggregate_results", `{"results": {` + all + `}, "totals": {"threads": 3, "tree_spend": 0.0123}}`},
	} {
		var in struct {
			Parameters struct {
				Operation string
				ThreadIDs []string `json:"thread_ids"`
			}
		}
		decode(t, boss.one(t), "rye_execute", &in)
		if in.Parameters.Operation != step.operation || strings.Join(in.Parameters.ThreadIDs, " ") != "w-0 w-1 w-2" {
			t.Errorf("got %+v, want %s", in, step.operation)
		}
		boss.answer(step.result)
	}
	var out struct{ Summary string }
	decode(t, boss.one(t), "rye_directive_return", &out)
	for _, part := range []string{"demo/one.md: ", "demo/two.md: ", "demo/three.md: ", "$0.0123"} {
		if !strings.Contains(out.Summary, part) {
			t.Errorf("%q is not in the summary %q", part, out.Summary)
		}
	}
}

// work plays a worker and returns its outputs.
func work(t *testing.T, client llm.Client, part string) (path, note string) {
	t.Helper()
	c := &conversation{client: client, model: "scripted-fast", messages: []llm.Message{
		llm.Text(llm.User, fmt.Sprintf("1. Write four to eight lines about %q.", part)),
	}}
	var file struct{ Path, Content string }
	decode(t, c.one(t), "rye_file_system_write", &file)
	if !strings.Contains(file.Content, part) {
		t.Errorf("content %q", file.Content)
	}
	c.answer(`{"success":true}`)
	var out struct{ Path, Note string }
	decode(t, c.one(t), "rye_directive_return", &out)
	if out.Path != file.Path || out.Path != "demo/"+part+".md" {
		t.Errorf("wrote %q, returned %q", file.Path, out.Path)
	}
	return out.Path, out.Note
}

// conversation is a thread reduced to its messages.
type conversation struct {
	client   llm.Client
	model    string
	messages []llm.Message
	calls    []llm.Block
}

// next asks for the next answer and returns its tool calls.
func (c *conversation) next(t *testing.T) []llm.Block {
	t.Helper()
	resp, err := c.client.Stream(t.Context(), llm.Request{Model: c.model, Messages: c.messages, MaxTokens: 100}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.messages = append(c.messages, llm.Message{Role: llm.Assistant, Blocks: resp.Blocks})
	c.calls = nil
	for _, block := range resp.Blocks {
		if block.Type == llm.ToolUseBlock {
			c.calls = append(c.calls, block)
		}
	}
	return c.calls
}

func (c *conversation) one(t *testing.T) llm.Block {
	t.Helper()
	calls := c.next(t)
	if len(calls) != 1 {
		t.Fatalf("%d tool calls, want 1", len(calls))
	}
	return calls[0]
}

// answer gives the results of the last answer's calls.
func (c *conversation) answer(results ...string) {
	message := llm.Message{Role: llm.User}
	for i, call := range c.calls {
		message.Blocks = append(message.Blocks, llm.Block{Type: llm.ToolResultBlock, ToolCallID: call.ToolCallID, Text: results[i]})
	}
	c.messages = append(c.messages, message)
}

func decode(t *testing.T, call llm.Block, tool string, into any) {
	t.Helper()
	if call.ToolName != tool {
		t.Fatalf("the model calls %s, want %s", call.ToolName, tool)
	}
	if err := json.Unmarshal(call.Input, into); err != nil {
		t.Fatalf("input %s: %v", call.Input, err)
	}
}

// TestShipped opens no connection: it checks that every shipped tier has a
// window and a price, and that nothing can be used without a key.
func TestShipped(t *testing.T) {
	t.Parallel()
	loader := config.New(resolve.Roots{System: system.FS()}).Read()
	r := NewSource(func(string) string { return "set" }).With(loader)
	for _, name := range []string{"anthropic", "openai", "gemini", "openrouter", "scripted"} {
		p, _, err := loader.Provider(name)
		if err != nil {
			t.Fatal(err)
		}
		for tier := range p.Tiers {
			got, err := r.Choose(t.Context(), Want{Override: name + "/" + tier})
			if err != nil || !got.Model.Priced || got.Model.ContextWindow == 0 {
				t.Errorf("%s/%s = %+v, %v", name, tier, got, err)
			}
		}
	}
}
