package server_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
)

func TestAddRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	add := func(change func(*server.Tool[echoIn, echoOut])) func(*server.Server) {
		return func(s *server.Server) {
			one := echo
			change(&one)
			server.Add(s, one)
		}
	}
	type noSuccess struct {
		Text string `json:"text"`
	}
	type oddError struct {
		Success bool           `json:"success"`
		Error   map[string]int `json:"error"`
	}
	tests := []struct {
		name string
		want string // in the panic; empty: none
		add  func(*server.Server)
	}{
		{"right", "", add(func(*server.Tool[echoIn, echoOut]) {})},
		{"no name", "a name has", add(func(t *server.Tool[echoIn, echoOut]) { t.Name = "" })},
		{"dots", "a name has", add(func(t *server.Tool[echoIn, echoOut]) { t.Name = "a.b" })},
		{"long name", "a name has", add(func(t *server.Tool[echoIn, echoOut]) { t.Name = strings.Repeat("n", 47) })},
		{"no title", "needs a title", add(func(t *server.Tool[echoIn, echoOut]) { t.Annotations.Title = "" })},
		{"no description", "needs a title", add(func(t *server.Tool[echoIn, echoOut]) { t.Description = "" })},
		{"long description", "2048", add(func(t *server.Tool[echoIn, echoOut]) { t.Description = strings.Repeat("d", 2049) })},
		{"no handler", "no handler", add(func(t *server.Tool[echoIn, echoOut]) { t.Handle = nil })},
		{"twice", "added twice", func(s *server.Server) { server.Add(s, echo); server.Add(s, echo) }},
		{"no success", "member success", func(s *server.Server) { addOut[noSuccess](s) }},
		{"no object", "must be an object", func(s *server.Server) { addOut[[]int](s) }},
		{"odd error", "does not admit a failure", func(s *server.Server) { addOut[oddError](s) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				got, _ := recover().(string)
				if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
					t.Errorf("panic %q, want %q", got, tt.want)
				}
			}()
			tt.add(server.New(server.Options{OutputSchemas: true}))
		})
	}
}

func addOut[Out any](s *server.Server) {
	server.Add(s, server.Tool[blockIn, Out]{
		Name: "odd", Description: "Odd.", Annotations: server.Annotations{Title: "Odd"},
		Handle: func(context.Context, server.Call, blockIn) (out Out, err error) { return out, nil },
	})
}

func TestInstructionsAreShort(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, newServer())
	raw, rpcErr := c.Request("initialize", map[string]any{"protocolVersion": servertest.Protocol})
	if rpcErr != nil {
		t.Fatal(rpcErr)
	}
	var result struct {
		Instructions string `json:"instructions"`
		Capabilities map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatal(err)
	}
	if words := len(strings.Fields(result.Instructions)); words == 0 || words > 200 {
		t.Errorf("%d words of instructions, want 1 to 200", words)
	}
	if len(result.Capabilities) != 2 || result.Capabilities["tools"] == nil || result.Capabilities["logging"] == nil {
		t.Errorf("capabilities %v, want tools and logging only", result.Capabilities)
	}
}

// marshalBomb panics when its result is encoded, after the handler returned.
type marshalBomb struct{}

func (marshalBomb) MarshalJSON() ([]byte, error) { panic("secret of the stack") }

type bombOut struct {
	Success bool        `json:"success"`
	Bomb    marshalBomb `json:"bomb"`
}

func TestPanicWhileEncodingIsAToolFailure(t *testing.T) {
	t.Parallel()
	s := server.New(server.Options{OutputSchemas: true})
	addOut[bombOut](s)
	r := servertest.Start(t, s).Call("odd", struct{}{})
	if r.Code() != "internal" || strings.Contains(string(r.JSON), "secret") {
		t.Errorf("result %s, error %v; want a failure with code internal", r.JSON, r.Err)
	}
}
