package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// asking is a result that ends a call with questions.
type asking struct {
	Type     string          `json:"resultType"`
	State    string          `json:"requestState"`
	Content  json.RawMessage `json:"content"`
	Requests map[string]struct {
		Method string              `json:"method"`
		Params servertest.Question `json:"params"`
	} `json:"inputRequests"`
}

// caller makes calls of ask as revision 2026-07-28 has them, one at a time.
type caller struct {
	t *testing.T
	c *servertest.Client
}

// startCaller returns a caller whose person is never asked by the client itself.
func startCaller(t *testing.T, a *asker, transport servertest.Transport) caller {
	c := servertest.Start(t, a.Server, servertest.Over(transport), servertest.Speaking("2026-07-28"),
		saying(servertest.Answer{}))
	return caller{t, c}
}

// call makes a call, with params beside name and arguments.
func (c caller) call(args askIn, more map[string]any) (json.RawMessage, *servertest.Error) {
	c.t.Helper()
	params := map[string]any{"name": "ask", "arguments": args}
	for name, value := range more {
		params[name] = value
	}
	return c.c.Request("tools/call", params)
}

// ask makes a call that must end with questions.
func (c caller) ask(args askIn, more map[string]any) asking {
	c.t.Helper()
	raw, err := c.call(args, more)
	var result asking
	if err != nil || json.Unmarshal(raw, &result) != nil || result.Type != "input_required" || len(result.State) < 20 || len(result.Requests) == 0 {
		c.t.Fatalf("no questions in %s, %v", raw, err)
	}
	return result
}

// again are the params of a call that is made again with answers.
func again(state string, answers map[string]string) map[string]any {
	responses := make(map[string]any)
	for key, action := range answers {
		responses[key] = servertest.Answer{Action: action}
	}
	return map[string]any{"requestState": state, "inputResponses": responses}
}

var modernTransports = []servertest.Transport{servertest.Stdio, servertest.Stateless}

// overModern runs a test over the transports of revision 2026-07-28.
func overModern(t *testing.T, test func(t *testing.T, transport servertest.Transport)) {
	t.Helper()
	for _, transport := range modernTransports {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			test(t, transport)
		})
	}
}

func TestCallEndsWithQuestions(t *testing.T) {
	t.Parallel()
	overModern(t, func(t *testing.T, transport servertest.Transport) {
		c := startCaller(t, newAsker(), transport)
		args := askIn{Questions: []string{"a", "b"}, AtOnce: true, Schema: nameSchema}
		got := c.ask(args, nil)
		for _, key := range []string{"a", "b"} {
			q := got.Requests[key]
			if q.Method != "elicitation/create" || q.Params.Message != key || string(q.Params.Schema) != nameSchema {
				t.Errorf("question %s: %+v", key, q)
			}
		}
		if len(got.Requests) != 2 {
			t.Errorf("%d questions, want 2", len(got.Requests))
		}
		if string(got.Content) != "[]" {
			t.Errorf("the content is %s; it is a list in every result", got.Content)
		}
	})
}

// An answer counts for the call and the question it was given to, and once.
func TestAnswersThatDoNotCount(t *testing.T) {
	t.Parallel()
	who := askIn{Questions: []string{"who"}}
	yes := map[string]string{"who": "accept"}
	tests := []struct {
		name  string
		retry func(c caller, state string) (json.RawMessage, *servertest.Error)
		want  string // in the result or error
	}{
		{"it counts", func(c caller, state string) (json.RawMessage, *servertest.Error) {
			return c.call(who, again(state, yes))
		}, `accept{}`},
		{"unknown answers are ignored", func(c caller, state string) (json.RawMessage, *servertest.Error) {
			return c.call(who, again(state, map[string]string{"who": "accept", "what": "decline"}))
		}, `accept{}`},
		{"no token", func(c caller, _ string) (json.RawMessage, *servertest.Error) {
			return c.call(who, map[string]any{"inputResponses": map[string]any{"who": servertest.Answer{Action: "accept"}}})
		}, `input_required`},
		{"tampered", func(c caller, state string) (json.RawMessage, *servertest.Error) {
			return c.call(who, again(state+"x", yes))
		}, `-32602`},
		{"another call", func(c caller, state string) (json.RawMessage, *servertest.Error) {
			return c.call(askIn{Questions: []string{"who"}, Number: 1}, again(state, yes))
		}, `-32602`},
		{"a call that differs little", func(c caller, state string) (json.RawMessage, *servertest.Error) {
			first := c.ask(askIn{Questions: []string{"who"}, Number: 1<<53 + 1}, nil)
			return c.call(askIn{Questions: []string{"who"}, Number: 1 << 53}, again(first.State, yes))
		}, `-32602`},
		{"used twice", func(c caller, state string) (json.RawMessage, *servertest.Error) {
			if raw, err := c.call(who, again(state, yes)); err != nil || !strings.Contains(string(raw), "accept{}") {
				c.t.Errorf("first use: %s, %v", raw, err)
			}
			return c.call(who, again(state, yes))
		}, `-32602`},
		{"the answer is missing", func(c caller, state string) (json.RawMessage, *servertest.Error) {
			return c.call(who, again(state, map[string]string{"what": "accept"}))
		}, `input_required`},
		{"answers of another type", func(c caller, state string) (json.RawMessage, *servertest.Error) {
			return c.call(who, map[string]any{"requestState": state, "inputResponses": 7})
		}, `-32602`},
		{"an answer of another type", func(c caller, state string) (json.RawMessage, *servertest.Error) {
			return c.call(who, map[string]any{"requestState": state, "inputResponses": map[string]any{"who": 7}})
		}, `tool_failed`},
		{"an answer that is too long", func(c caller, state string) (json.RawMessage, *servertest.Error) {
			return c.call(who, map[string]any{"requestState": state, "inputResponses": map[string]any{"who": strings.Repeat("x", 70_000)}})
		}, `at most 65536`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			overModern(t, func(t *testing.T, transport servertest.Transport) {
				c := startCaller(t, newAsker(), transport)
				raw, err := tt.retry(c, c.ask(who, nil).State)
				if got := fmt.Sprint(string(raw), err); !strings.Contains(got, tt.want) {
					t.Errorf("got %s, want %s", got, tt.want)
				}
			})
		})
	}
}

// A person who agreed to one thing is asked again when it has become another.
func TestChangedQuestionIsAskedAgain(t *testing.T) {
	t.Parallel()
	a := newAsker()
	var price atomic.Int64
	price.Store(5)
	a.message = func(question string) string { return fmt.Sprintf("%s for $%d?", question, price.Load()) }
	c := startCaller(t, a, servertest.Stateless)
	args := askIn{Questions: []string{"a", "b"}}
	first := c.ask(args, nil)
	price.Store(50)
	second := c.ask(args, again(first.State, map[string]string{"a": "accept"}))
	if got := second.Requests["a"].Params.Message; got != "a for $50?" {
		t.Errorf("asked %q", got)
	}
}

// Answers to earlier questions stay with the call.
func TestEarlierAnswersAreKept(t *testing.T) {
	t.Parallel()
	overModern(t, func(t *testing.T, transport servertest.Transport) {
		c := startCaller(t, newAsker(), transport)
		args := askIn{Questions: []string{"a", "b"}}
		first := c.ask(args, nil)
		second := c.ask(args, again(first.State, map[string]string{"a": "accept"}))
		if second.State == first.State || len(second.Requests) != 1 {
			t.Errorf("second round: %+v", second)
		}
		raw, err := c.call(args, again(second.State, map[string]string{"b": "decline"}))
		if !strings.Contains(string(raw), `"answers":["accept{}","decline"]`) {
			t.Errorf("got %s, %v", raw, err)
		}
	})
}

func TestAnswersComeTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := startCaller(t, newAsker(), servertest.Stdio)
		who := askIn{Questions: []string{"who"}}
		early, late := c.ask(who, nil), c.ask(who, nil)
		<-time.After(59 * time.Minute)
		if raw, err := c.call(who, again(early.State, map[string]string{"who": "accept"})); err != nil {
			t.Errorf("within the hour: %s, %v", raw, err)
		}
		<-time.After(2 * time.Minute)
		if raw, err := c.call(who, again(late.State, map[string]string{"who": "accept"})); err == nil || err.Code != -32602 {
			t.Errorf("after the hour: %s, %v", raw, err)
		}
	})
}

// A client that does not declare elicitation for a call is not asked in it,
// whatever it declares for another at the same time.
func TestCapabilityIsThatOfTheCall(t *testing.T) {
	t.Parallel()
	a := newAsker()
	begun, goOn := make(chan struct{}), make(chan struct{})
	a.context = func(ctx context.Context) context.Context {
		close(begun)
		<-goOn
		return ctx
	}
	w := startWire(t, a.Server)
	modern := func(id int, tool, args, capabilities string) string {
		const meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`
		return strings.TrimSuffix(call(id, tool, args), "}}") + meta + capabilities + "}}}"
	}
	w.send(modern(1, "ask", `{"questions":["who"]}`, `{}`))
	<-begun
	w.send(modern(2, "can", `{}`, `{"elicitation":{}}`))
	w.await(`"can":true`)
	close(goOn)
	w.await(`"code":"unsupported"`)
	if err := w.close(); err != nil {
		t.Errorf("ServeStdio: %v", err)
	}
}

// Two questions of one call need two keys.
func TestTwoQuestionsWithOneKey(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, newAsker().Server, servertest.Over(servertest.Stateless), saying(servertest.Answer{Action: "accept"}))
	if r := c.Call("ask", askIn{Questions: []string{"a", "a?"}}); r.Code() != tool.CodeInternal {
		t.Errorf("got %s, %v", r.JSON, r.Err)
	}
}
