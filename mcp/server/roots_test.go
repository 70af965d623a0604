package server_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type rootsOut struct {
	Success bool     `json:"success"`
	Roots   []string `json:"roots"`
}

// newRootsServer has a tool that answers with the client's roots.
func newRootsServer() *server.Server {
	s := server.New(server.Options{OutputSchemas: true, MapError: func(err error) *tool.Fault {
		if errors.Is(err, server.ErrNoRoots) {
			return tool.Faultf(tool.CodeNoProject, "%w", err)
		}
		return nil
	}})
	server.Add(s, server.Tool[blockIn, rootsOut]{
		Name: "roots", Description: "Lists the roots.", Annotations: server.Annotations{Title: "Roots", ReadOnly: true},
		Handle: func(ctx context.Context, _ server.Call, _ blockIn) (rootsOut, error) {
			roots, err := s.Roots(ctx)
			return rootsOut{Success: true, Roots: append([]string{}, roots...)}, err
		},
	})
	return s
}

func TestRoots(t *testing.T) {
	t.Parallel()
	const noRoots = `{"success":false,"code":"no_project","error":"client has no roots to ask for"}`
	tests := []struct {
		name string
		opts []servertest.Option
		want string
	}{
		{"two", []servertest.Option{servertest.WithRoots("/a b/ü%", "/c/")}, `{"success":true,"roots":["/a b/ü%","/c"]}`},
		{"none", []servertest.Option{servertest.WithRoots()}, `{"success":true,"roots":[]}`},
		{"not declared", nil, noRoots},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			overEach(t, func(t *testing.T, transport servertest.Option) {
				c := servertest.Start(t, newRootsServer(), append(tt.opts, transport)...)
				want := tt.want
				if c.Transport() == servertest.Stateless {
					want = noRoots
				}
				if r := c.Call("roots", struct{}{}); string(r.JSON) != want {
					t.Errorf("got %s, %v; want %s", r.JSON, r.Err, want)
				}
			})
		})
	}
}

const declareRoots = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"x","version":"1"}}}`

// exchangeRoots returns what the server writes after the handshake.
func exchangeRoots(t *testing.T, lines ...string) []string {
	t.Helper()
	w := startWire(t, newRootsServer())
	w.send(declareRoots)
	for _, line := range lines {
		w.send(line)
		synctest.Wait()
	}
	if err := w.close(); err != nil {
		t.Errorf("ServeStdio: %v", err)
	}
	return slices.Collect(strings.Lines(w.output()))[1:]
}

func TestRootsOfOddClients(t *testing.T) {
	t.Parallel()
	ask := call(1, "roots", `{}`)
	const request = `{"jsonrpc":"2.0","id":"rye-1","method":"roots/list"}` + "\n"
	tests := []struct {
		name, response string
		want           string // in the answer
	}{
		{"error", `{"jsonrpc":"2.0","id":"rye-1","error":{"code":-32601,"message":"no such method"}}`, `no such method (-32601)`},
		{"not a list", `{"jsonrpc":"2.0","id":"rye-1","result":7}`, `"isError":true`},
		{"not files", `{"jsonrpc":"2.0","id":"rye-1","result":{"roots":[{"uri":"https://x/y"},{"uri":"file://host/x"},{"uri":"file:rel"},{"uri":"%"},{"uri":"file:///ok"}]}}`, `{"success":true,"roots":["/ok"]}`},
		{"twice", `{"jsonrpc":"2.0","id":"rye-1","result":{"roots":[]}}` + "\n" + `{"jsonrpc":"2.0","id":"rye-1","result":{"roots":[{"uri":"file:///x"}]}}`, `"roots":[]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got := exchangeRoots(t, ask, tt.response)
				if len(got) != 2 || got[0] != request || !strings.Contains(got[1], tt.want) {
					t.Errorf("got %q, want %s in the answer", got, tt.want)
				}
			})
		})
	}
}

// A client that declares roots and never answers delays a call by two seconds.
func TestRootsTimeOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := startWire(t, newRootsServer())
		w.send(declareRoots)
		w.send(call(1, "roots", `{}`))
		waitFor(w, `"code":"timeout"`)
		w.send(call(2, "roots", `{}`))
		synctest.Wait()
		if got := w.output(); !strings.Contains(got, `"id":2,"result"`) || strings.Contains(got, "rye-2") {
			t.Errorf("a client that is known not to answer is asked again: %s", got)
		}
		if got := w.output(); !strings.Contains(got, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"rye-1"}}`) {
			t.Errorf("the request is not cancelled: %s", got)
		}
		if err := w.close(); err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
	})
}

func TestRootsOfModernClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := exchangeRoots(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"roots","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}`)
		if len(got) != 1 || !strings.Contains(got[0], `"code":"no_project"`) {
			t.Errorf("got %q, want ErrNoRoots", got)
		}
	})
}
