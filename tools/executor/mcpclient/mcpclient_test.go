package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"go.uber.org/goleak"
)

// mode, in its environment, makes the test binary a server of that behaviour.
const mode = "MCPCLIENT_SERVER"

func TestMain(m *testing.M) {
	if behaviour := os.Getenv(mode); behaviour != "" {
		behave(behaviour)
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

func behave(behaviour string) {
	fmt.Fprintln(os.Stderr, "a server that", behaviour)
	switch behaviour {
	case "is silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "ends at once":
		os.Exit(3)
	case "talks nonsense first":
		fmt.Println("Welcome!\n{\"jsonrpc\":\n\xff\xfe")
	}
	_ = server.ServeStdio(tools())
}

// tools is a server whose tools do what a good or bad server's do.
func tools() *server.MCPServer {
	s := server.NewMCPServer("other", "1", server.WithToolCapabilities(true))
	s.EnableSampling()
	add := func(name string, answer func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
		tool := mcp.NewTool(name, mcp.WithDescription("does "+name), mcp.WithReadOnlyHintAnnotation(name == "echo"))
		tool.InputSchema, tool.RawInputSchema = mcp.ToolInputSchema{}, json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}],"x-more":1}`)
		s.AddTool(tool, answer)
	}
	add("echo", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		text, err := json.Marshal(r.Params.Arguments)
		return mcp.NewToolResultText(string(text) + " of " + os.Getenv("GIVEN")), err
	})
	add("structured", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultStructured(map[string]int{"n": 1}, `{"n":1}`), nil
	})
	add("member", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultStructured(map[string]any{"content": "words", "more": []int{1}}, "words"), nil
	})
	add("picture", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultImage("see", "aGVsbG8=", "image/png"), nil
	})
	add("refuse", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("not today"), nil
	})
	add("die", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(1)
		return nil, nil
	})
	add("hang", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	add("flood", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(strings.Repeat("x", maxMessage+1)), nil
	})
	add("sample", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, err := s.RequestSampling(ctx, mcp.CreateMessageRequest{}) //nolint:staticcheck // servers still do
		if err == nil {
			return mcp.NewToolResultText("sampled"), nil
		}
		return mcp.NewToolResultError("no sampling"), nil
	})
	return s
}

func stdio(t *testing.T, behaviour string) Server {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Server{
		ID: "mcp/servers/other", Transport: Stdio, Command: program, Dir: t.TempDir(),
		Env: []string{mode + "=" + behaviour, "GIVEN=env"}, Timeout: time.Minute,
	}
}

func connections(t *testing.T) *Connections {
	t.Helper()
	c := New("test")
	t.Cleanup(c.Close)
	return c
}

func web(t *testing.T, handler http.Handler) Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return Server{ID: "mcp/servers/web", Transport: HTTP, URL: s.URL + "/mcp", Timeout: time.Minute}
}

// TestCalls shows what the answers of servers become, over both transports.
func TestCalls(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]Server{"stdio": stdio(t, "works"), "http": web(t, server.NewStreamableHTTPServer(tools(), server.WithStateful(true)))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connections(t)
			echo, err := c.Call(t.Context(), s, "echo", json.RawMessage(`{"a":1}`))
			if err != nil || !strings.HasPrefix(echo.Text, `{"a":1} of `) || echo.IsError {
				t.Errorf("echo: %+v, %v", echo, err)
			}
			structured, err := c.Call(t.Context(), s, "structured", nil)
			if err != nil || string(structured.Structured) != `{"n":1}` || structured.Text != "" {
				t.Errorf("structured: %+v, %v", structured, err)
			}
			member, err := c.Call(t.Context(), s, "member", nil)
			if err != nil || member.Text != "" || !strings.Contains(string(member.Structured), `"content":"words"`) {
				t.Errorf("member: %+v, %v", member, err)
			}
			picture, err := c.Call(t.Context(), s, "picture", nil)
			if err != nil || picture.Text != "see" || len(picture.Attachments()) != 1 || string(picture.Attachments()[0].Data) != "hello" {
				t.Errorf("picture: %+v, %v", picture, err)
			}
			refused, err := c.Call(t.Context(), s, "refuse", nil)
			if err != nil || !refused.IsError || refused.Text != "not today" {
				t.Errorf("refuse: %+v, %v", refused, err)
			}
			_, err = c.Call(t.Context(), s, "unknown", nil)
			if failed, ok := errors.AsType[*FailedError](err); !ok || !strings.Contains(err.Error(), "unknown") || failed.ServerID != s.ID {
				t.Errorf("unknown: %v", err)
			}
		})
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]Server{"stdio": stdio(t, "works"), "http": web(t, server.NewStreamableHTTPServer(tools()))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := connections(t).Tools(t.Context(), s)
			if err != nil || len(got) != 9 {
				t.Fatalf("%d tools, %v", len(got), err)
			}
			for _, tool := range got {
				if tool.Description != "does "+tool.Name || tool.Annotations.ReadOnly != (tool.Name == "echo") {
					t.Errorf("%+v", tool)
				}
				if !strings.Contains(string(tool.Schema), "oneOf") || !strings.Contains(string(tool.Schema), "x-more") {
					t.Errorf("%s: schema %s", tool.Name, tool.Schema)
				}
			}
		})
	}
}

// TestAttackMCPServer: a server of tools dies, hangs, is silent, floods, asks for sampling or talks nonsense. The call fails with the reason within its time, and the next one works.
func TestAttackMCPServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		behaviour, tool string
		timeout         time.Duration
		want            string // in the error; empty: none
	}{
		{"works", "die", time.Minute, "its process ended (exit code 1)"},
		{"works", "hang", time.Second, "no answer within 1s"},
		{"works", "flood", time.Minute, "a message of more than 16 MiB"},
		{"works", "sample", time.Minute, ""},
		{"talks nonsense first", "echo", time.Minute, ""},
		{"ends at once", "echo", time.Minute, "its process ended (exit code 3)"},
	} {
		t.Run(test.behaviour+" "+test.tool, func(t *testing.T) {
			t.Parallel()
			c := connections(t)
			s := stdio(t, test.behaviour)
			s.Timeout = test.timeout
			result, err := c.Call(t.Context(), s, test.tool, nil)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("%+v, %v", result, err)
			case test.want == "" && test.tool == "sample" && (!result.IsError || result.Text != "no sampling"):
				t.Errorf("sampled: %+v", result)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("%v, want %q", err, test.want)
			}
			if failed, ok := errors.AsType[*FailedError](err); ok && !strings.Contains(failed.Stderr, "a server that") {
				t.Errorf("stderr %q", failed.Stderr)
			}
			if test.behaviour == "ends at once" {
				return
			}
			if again, err := c.Call(t.Context(), s, "echo", nil); err != nil || again.IsError {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	}
}

// TestSilentServer shows that a server which never greets is given up with the
// caller, and does not outlive that.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := connections(t).Call(ctx, stdio(t, "is silent"), "echo", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestOneConnection shows that a server is started once for many calls, and anew
// when it is declared otherwise.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	var greeted atomic.Int32
	hooks := &server.Hooks{}
	hooks.AddBeforeAny(func(_ context.Context, _ any, method mcp.MCPMethod, _ any) {
		if method == mcp.MethodServerDiscover || method == mcp.MethodInitialize {
			greeted.Add(1)
		}
	})
	s := web(t, server.NewStreamableHTTPServer(server.NewMCPServer("n", "1", server.WithHooks(hooks), server.WithToolCapabilities(true))))
	c := connections(t)
	for range 3 {
		if _, err := c.Tools(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	first := greeted.Load()
	s.Headers = map[string]string{"X-Other": "1"}
	if _, err := c.Tools(t.Context(), s); err != nil || first == 0 || greeted.Load() != 2*first {
		t.Errorf("greeted %d, then %d times: %v", first, greeted.Load(), err)
	}
	c.Close()
	if _, err := c.Tools(t.Context(), s); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

// TestSessionLost shows that a server which has forgotten the session is greeted
// anew.
func TestSessionLost(t *testing.T) {
	t.Parallel()
	var handler atomic.Pointer[server.StreamableHTTPServer]
	fresh := func() {
		s := server.NewStreamableHTTPServer(tools(), server.WithStateful(true), server.WithStreamableHTTPProtocolVersions("2025-06-18"))
		handler.Store(s)
	}
	fresh()
	s := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.Load().ServeHTTP(w, r) }))
	c := connections(t)
	for range 2 {
		if got, err := c.Call(t.Context(), s, "echo", nil); err != nil || got.IsError {
			t.Fatalf("%+v, %v", got, err)
		}
		fresh()
	}
}

// TestAttackMCPRedirect: a server of tools redirects to another host. It is not followed there, so that no key in a header goes along.
func TestAttackMCPRedirect(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	elsewhere := web(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	s := web(t, http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	s.Headers = map[string]string{"X-API-Key": "secret"}
	if _, err := connections(t).Tools(t.Context(), s); err == nil || !strings.Contains(err.Error(), "redirects to") || reached.Load() != 0 {
		t.Errorf("%v; reached %d times", err, reached.Load())
	}
}

// TestAttackMCPFlood: a server over HTTP answers without end. Reading it is bounded.
func TestAttackMCPFlood(t *testing.T) {
	t.Parallel()
	s := web(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for {
			if _, err := w.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil {
				return
			}
		}
	}))
	if _, err := connections(t).Tools(t.Context(), s); !errors.Is(err, errTooLong) {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		s    Server
		want string
	}{
		{Server{Transport: Stdio}, "names no command"},
		{Server{Transport: "carrier pigeon"}, "neither stdio nor http"},
		{Server{Transport: HTTP, URL: "ftp://x"}, "not one of http or https"},
		{Server{Transport: HTTP, URL: "/mcp"}, "not one of http or https"},
		{Server{Transport: HTTP, URL: "http://a:b@c/mcp"}, "holds a password"},
	} {
		err := test.s.Check()
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test.s, err)
		}
		if _, called := connections(t).Call(t.Context(), test.s, "x", nil); !strings.Contains(called.Error(), test.want) {
			t.Errorf("%v", called)
		}
	}
}
