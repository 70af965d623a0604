// Package llmtest is the behaviour every [llm.Client] must have, as a test
// suite that runs against a scripted server; and what holds of every request.
package llmtest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/scripted"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// Protocol is what a client speaks.
type Protocol string

// The protocols the scripted server knows.
const (
	Anthropic Protocol = "anthropic"
	OpenAI    Protocol = "openai" // Chat Completions
	Responses Protocol = "responses"
)

// apiKey must never be seen in an error.
const apiKey = "sk-test-never-show-me"

// suite is one client under test.
type suite struct {
	open     func(wire.Config) llm.Client
	protocol Protocol
}

// Run tests the clients that open makes. The caller's TestMain should fail on
// leaked goroutines.
func Run(t *testing.T, open func(wire.Config) llm.Client, protocol Protocol) {
	s := suite{open, protocol}
	for name, test := range map[string]func(*testing.T){
		"text":            s.text,
		"reasoning":       s.reasoning,
		"tools":           s.tools,
		"tool results":    s.toolResults,
		"invalid input":   s.invalidInput,
		"images":          s.images,
		"failed images":   s.failedImages,
		"made-up calls":   s.madeUpCalls,
		"usage":           s.usage,
		"stop reasons":    s.stopReasons,
		"nothing empty":   s.nothingEmpty,
		"refusals":        s.refusals,
		"error in stream": s.errorInStream,
		"cut":             s.cut,
		"nobody there":    s.nobodyThere,
		"silent":          s.silent,
		"falls silent":    s.fallsSilent,
		"pings":           s.pings,
		"too long":        s.tooLong,
		"cancelled":       s.cancelled,
		"key stays away":  s.keyStaysAway,
		"headers":         s.headers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// bench is a client and the server it talks to.
type bench struct {
	client llm.Client
	server *scripted.Server
}

// start serves a script; change may adapt the client's configuration.
func (s suite) start(t *testing.T, script string, change ...func(*wire.Config)) bench {
	t.Helper()
	parsed, err := scripted.Parse("test.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := scripted.Serve(context.Background(), parsed, scripted.Options{Record: true})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	cfg := wire.Config{
		BaseURL:      server.BaseURL(),
		APIKey:       apiKey,
		HTTPClient:   &http.Client{Transport: transport},
		StallTimeout: time.Minute,
	}
	if s.protocol != Anthropic {
		cfg.BaseURL += "/v1"
	}
	for _, f := range change {
		f(&cfg)
	}
	t.Cleanup(func() {
		Accepted(t, server.Requests())
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return bench{s.open(cfg), server}
}

// ask is a request with one user message.
func ask(text string) llm.Request {
	return llm.Request{
		Model:     "test-model",
		System:    "Be brief.",
		Messages:  []llm.Message{llm.Text(llm.User, text)},
		Tools:     []llm.Tool{{Name: "look", Description: "Looks.", Schema: []byte(`{"type":"object","properties":{"at":{"type":"string"}}}`)}},
		MaxTokens: 100,
	}
}

// stream asks and returns the answer with what the sink saw.
func (b bench) stream(t *testing.T, req llm.Request) (llm.Response, []llm.Delta) {
	t.Helper()
	var deltas []llm.Delta
	resp, err := b.client.Stream(context.Background(), req, func(d llm.Delta) { deltas = append(deltas, d) })
	if err != nil {
		t.Fatal(err)
	}
	return resp, deltas
}

// fail asks and returns the failure.
func (b bench) fail(t *testing.T) (llm.Response, *llm.APIError) {
	t.Helper()
	resp, err := b.client.Stream(context.Background(), ask("hi"), nil)
	var failure *llm.APIError
	if !errors.As(err, &failure) {
		t.Fatalf("got error %v (%T), want an *llm.APIError", err, err)
	}
	if strings.Contains(err.Error(), apiKey) {
		t.Errorf("the key is in the error: %v", err)
	}
	return resp, failure
}

// said joins the deltas of one type.
func said(deltas []llm.Delta, kind llm.BlockType) string {
	var out strings.Builder
	for _, d := range deltas {
		if d.Type == kind {
			out.WriteString(d.Text)
		}
	}
	return out.String()
}
