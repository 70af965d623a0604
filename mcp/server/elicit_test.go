package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

type askIn struct {
	Questions []string `json:"questions"`
	Schema    string   `json:"schema,omitempty"`
	AtOnce    bool     `json:"at_once,omitempty"`
	Number    int      `json:"number,omitempty" jsonschema:"makes calls differ"`
}

type askOut struct {
	Success bool     `json:"success"`
	Answers []string `json:"answers"`
}

type canOut struct {
	Success bool `json:"success"`
	Can     bool `json:"can"`
}

// nameSchema is that of an answer with a name.
const nameSchema = `{"type":"object","properties":{"name":{"type":"string","maxLength":10}},"required":["name"]}`

// asker is a server with a tool that asks the person.
type asker struct {
	*server.Server
	ended   chan error                            // what each question that was not answered came to
	message func(question string) string          // what the person reads
	context func(context.Context) context.Context // what the questions are asked with
}

func newAsker() *asker {
	a := &asker{
		Server:  server.New(server.Options{OutputSchemas: true}),
		ended:   make(chan error, 16),
		message: func(question string) string { return question },
		context: func(ctx context.Context) context.Context { return ctx },
	}
	server.Add(a.Server, server.Tool[askIn, askOut]{
		Name: "ask", Description: "Asks the person.", Annotations: server.Annotations{Title: "Ask"},
		Handle: a.handle,
	})
	server.Add(a.Server, server.Tool[blockIn, canOut]{
		Name: "can", Description: "Says whether it can ask.", Annotations: server.Annotations{Title: "Can"},
		Handle: func(ctx context.Context, _ server.Call, _ blockIn) (canOut, error) {
			return canOut{Success: true, Can: server.CanElicit(ctx)}, nil
		},
	})
	server.Add(a.Server, echo)
	return a
}

func (a *asker) handle(ctx context.Context, call server.Call, in askIn) (askOut, error) {
	out := askOut{Success: true, Answers: make([]string, len(in.Questions))}
	errs := make([]error, len(in.Questions))
	ctx = a.context(ctx)
	var asking sync.WaitGroup
	for i, question := range in.Questions {
		call.Progress(server.Progress{Progress: float64(i), Message: "before " + question})
		asking.Go(func() { out.Answers[i], errs[i] = a.ask(ctx, question, in.Schema) })
		if !in.AtOnce {
			asking.Wait()
			if errs[i] != nil {
				return out, errs[i]
			}
		}
	}
	asking.Wait()
	return out, errors.Join(errs...)
}

// ask asks one question. Its key is that of the one without a question mark.
func (a *asker) ask(ctx context.Context, question, schema string) (string, error) {
	result, err := server.Elicit(ctx, server.ElicitRequest{Key: strings.TrimSuffix(question, "?"), Message: a.message(question), Schema: json.RawMessage(schema)})
	if err != nil {
		a.ended <- err
		return "", fmt.Errorf("asking %s: %w", question, err)
	}
	return result.Action + string(result.Content), nil
}

// overSessions runs a test over each transport on which the server sends
// requests.
func overSessions(t *testing.T, test func(t *testing.T, transport servertest.Option)) {
	t.Helper()
	for _, transport := range []servertest.Transport{servertest.Stdio, servertest.StreamableHTTP, servertest.SSE} {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			test(t, servertest.Over(transport))
		})
	}
}

// saying is a person who does the same with every question.
func saying(a servertest.Answer) servertest.Option {
	return servertest.Asking(func(servertest.Question) servertest.Answer { return a })
}

func TestElicit(t *testing.T) {
	t.Parallel()
	named := func(name any) servertest.Answer {
		return servertest.Answer{Action: "accept", Content: map[string]any{"name": name}}
	}
	tests := []struct {
		name string
		opts []servertest.Option
		want string // in the result
	}{
		{"accept", []servertest.Option{saying(named("Ada"))}, `{"success":true,"answers":["accept{\"name\":\"Ada\"}"]}`},
		{"decline", []servertest.Option{saying(servertest.Answer{Action: "decline", Content: 7})}, `"answers":["decline"]`},
		{"cancel", []servertest.Option{saying(servertest.Answer{Action: "cancel"})}, `"answers":["cancel"]`},
		{"not declared", nil, `"code":"unsupported"`},
		{"no such action", []servertest.Option{saying(servertest.Answer{Action: "perhaps"})}, `no action \"perhaps\"`},
		{"another type", []servertest.Option{saying(named(7))}, `"code":"tool_failed"`},
		{"too long", []servertest.Option{saying(named("Augusta Ada King"))}, `"code":"tool_failed"`},
		{"no content", []servertest.Option{saying(servertest.Answer{Action: "accept"})}, `"code":"tool_failed"`},
		{"no object", []servertest.Option{saying(servertest.Answer{Action: "accept", Content: 7})}, `"code":"tool_failed"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			overEach(t, func(t *testing.T, transport servertest.Option) {
				c := servertest.Start(t, newAsker().Server, append(tt.opts, transport)...)
				r := c.Call("ask", askIn{Questions: []string{"who"}, Schema: nameSchema})
				if !strings.Contains(string(r.JSON), tt.want) {
					t.Errorf("got %s, %v; want %s", r.JSON, r.Err, tt.want)
				}
			})
		})
	}
}

func TestCanElicit(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, transport servertest.Option) {
		declaring := servertest.Start(t, newAsker().Server, transport, saying(servertest.Answer{Action: "accept"}))
		other := servertest.Start(t, newAsker().Server, transport)
		for c, want := range map[*servertest.Client]bool{declaring: true, other: false} {
			if r := c.Call("can", struct{}{}); string(r.JSON) != fmt.Sprintf(`{"success":true,"can":%t}`, want) {
				t.Errorf("got %s, %v; want %t", r.JSON, r.Err, want)
			}
		}
	})
}

// A question without a schema is answered by accepting it.
func TestElicitWithoutSchema(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, transport servertest.Option) {
		c := servertest.Start(t, newAsker().Server, transport, saying(servertest.Answer{Action: "accept"}))
		if r := c.Call("ask", askIn{Questions: []string{"go on?"}}); !strings.Contains(string(r.JSON), `"answers":["accept{}"]`) {
			t.Errorf("got %s, %v", r.JSON, r.Err)
		}
	})
}

// Clients that do not know elicitation though they declare it are asked once.
func TestElicitOfClientsThatCannot(t *testing.T) {
	t.Parallel()
	overSessions(t, func(t *testing.T, transport servertest.Option) {
		var asked atomic.Int64
		c := servertest.Start(t, newAsker().Server, transport, servertest.Asking(func(servertest.Question) servertest.Answer {
			asked.Add(1)
			return servertest.Answer{Err: &servertest.Error{Code: -32601, Message: "Method not found"}}
		}))
		for range 2 {
			if r := c.Call("ask", askIn{Questions: []string{"who"}}); r.Code() != tool.CodeUnsupported {
				t.Errorf("got %s, %v", r.JSON, r.Err)
			}
			if r := c.Call("can", struct{}{}); !strings.Contains(string(r.JSON), `"can":false`) {
				t.Errorf("after it: %s, %v", r.JSON, r.Err)
			}
		}
		if asked.Load() != 1 {
			t.Errorf("asked %d times, want once", asked.Load())
		}
	})
}

// An error of another kind may be about the one question.
func TestElicitOfClientsThatFail(t *testing.T) {
	t.Parallel()
	overSessions(t, func(t *testing.T, transport servertest.Option) {
		var asked atomic.Int64
		c := servertest.Start(t, newAsker().Server, transport, servertest.Asking(func(servertest.Question) servertest.Answer {
			if asked.Add(1) == 1 {
				return servertest.Answer{Err: &servertest.Error{Code: -32603, Message: "no window"}}
			}
			return servertest.Answer{Action: "accept"}
		}))
		if r := c.Call("ask", askIn{Questions: []string{"who"}}); r.Code() != tool.CodeToolFailed || !strings.Contains(string(r.JSON), "no window") {
			t.Errorf("got %s, %v", r.JSON, r.Err)
		}
		if r := c.Call("ask", askIn{Questions: []string{"who"}}); r.IsError {
			t.Errorf("got %s, %v", r.JSON, r.Err)
		}
	})
}

func TestSeveralQuestions(t *testing.T) {
	t.Parallel()
	for _, atOnce := range []bool{true, false} {
		t.Run(fmt.Sprintf("at once %t", atOnce), func(t *testing.T) {
			t.Parallel()
			overEach(t, func(t *testing.T, transport servertest.Option) {
				var asked sync.Map
				c := servertest.Start(t, newAsker().Server, transport, servertest.Asking(func(q servertest.Question) servertest.Answer {
					if _, again := asked.LoadOrStore(q.Message, true); again {
						t.Errorf("%s is asked again", q.Message)
					}
					return servertest.Answer{Action: "accept", Content: map[string]any{"name": "to " + q.Message}}
				}))
				r := c.Call("ask", askIn{Questions: []string{"a", "b", "c"}, Schema: nameSchema, AtOnce: atOnce})
				for _, question := range []string{"a", "b", "c"} {
					if !strings.Contains(string(r.JSON), `"accept{\"name\":\"to `+question+`\"}"`) {
						t.Errorf("no answer to %s in %s, %v", question, r.JSON, r.Err)
					}
				}
			})
		})
	}
}

// Answers may come in another order than their questions.
func TestAnswersAreMatchedByID(t *testing.T) {
	t.Parallel()
	overSessions(t, func(t *testing.T, transport servertest.Option) {
		second := make(chan struct{})
		c := servertest.Start(t, newAsker().Server, transport, servertest.Asking(func(q servertest.Question) servertest.Answer {
			if q.Message == "b" {
				close(second)
				return servertest.Answer{Action: "decline"}
			}
			<-second
			return servertest.Answer{Action: "accept"}
		}))
		r := c.Call("ask", askIn{Questions: []string{"a", "b"}, AtOnce: true})
		if !strings.Contains(string(r.JSON), `"answers":["accept{}","decline"]`) {
			t.Errorf("got %s, %v", r.JSON, r.Err)
		}
	})
}

// A client that cancels a call in which the person is asked is told that the question is
// moot.
func TestCancelWhileAsked(t *testing.T) {
	t.Parallel()
	overSessions(t, func(t *testing.T, transport servertest.Option) {
		a := newAsker()
		asked, withdrawn := make(chan struct{}), make(chan struct{})
		c := servertest.Start(t, a.Server, transport, servertest.Asking(func(q servertest.Question) servertest.Answer {
			if q.Message == "other" {
				return servertest.Answer{Action: "accept"}
			}
			close(asked)
			<-q.Withdrawn
			close(withdrawn)
			return servertest.Answer{}
		}))
		p := c.CallAsync("ask", askIn{Questions: []string{"who"}})
		<-asked
		p.Cancel()
		<-withdrawn
		if err := <-a.ended; !errors.Is(err, server.ErrRequestCancelled) {
			t.Errorf("the question ended with %v", err)
		}
		if r := c.Call("ask", askIn{Questions: []string{"other"}}); !strings.Contains(string(r.JSON), "accept") {
			t.Errorf("after it: %s, %v", r.JSON, r.Err)
		}
	})
}

// A handler that waits no longer withdraws its question at once.
func TestHandlerStopsAsking(t *testing.T) {
	t.Parallel()
	overSessions(t, func(t *testing.T, transport servertest.Option) {
		a := newAsker()
		a.ended = make(chan error) // the handler goes on when the test has seen the question end
		stopped := errors.New("changed its mind")
		ctx, stop := context.WithCancelCause(t.Context())
		a.context = func(of context.Context) context.Context {
			asking, end := context.WithCancelCause(of)
			context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
			return asking
		}
		withdrawn := make(chan struct{})
		c := servertest.Start(t, a.Server, transport, servertest.Asking(func(q servertest.Question) servertest.Answer {
			stop(stopped)
			<-q.Withdrawn
			close(withdrawn)
			return servertest.Answer{}
		}))
		p := c.CallAsync("ask", askIn{Questions: []string{"who"}})
		<-withdrawn
		if err := <-a.ended; !errors.Is(err, stopped) {
			t.Errorf("the question ended with %v", err)
		}
		if r := p.Result(); !r.IsError {
			t.Errorf("got %s, %v", r.JSON, r.Err)
		}
	})
}

// A question ends with its call, even one that is asked with a context that
// does not.
func TestQuestionEndsWithItsCall(t *testing.T) {
	t.Parallel()
	overSessions(t, func(t *testing.T, transport servertest.Option) {
		a := newAsker()
		a.context = context.WithoutCancel
		asked, withdrawn := make(chan struct{}), make(chan struct{})
		c := servertest.Start(t, a.Server, transport, servertest.Asking(func(q servertest.Question) servertest.Answer {
			close(asked)
			<-q.Withdrawn
			close(withdrawn)
			return servertest.Answer{}
		}))
		p := c.CallAsync("ask", askIn{Questions: []string{"who"}})
		<-asked
		p.Cancel()
		<-withdrawn
		if err := <-a.ended; err == nil {
			t.Error("the question was answered")
		}
	})
}

// After its call has ended a handler asks nobody.
func TestQuestionAfterTheCall(t *testing.T) {
	t.Parallel()
	overSessions(t, func(t *testing.T, transport servertest.Option) {
		s := server.New(server.Options{OutputSchemas: true})
		answered, ended := make(chan struct{}), make(chan error)
		server.Add(s, server.Tool[blockIn, blockOut]{
			Name: "leave", Description: "Leaves a goroutine behind.", Annotations: server.Annotations{Title: "Leave"},
			Handle: func(ctx context.Context, _ server.Call, _ blockIn) (blockOut, error) {
				go func() {
					<-answered
					_, err := server.Elicit(context.WithoutCancel(ctx), server.ElicitRequest{Message: "who"})
					ended <- err
				}()
				return blockOut{Success: true}, nil
			},
		})
		c := servertest.Start(t, s, transport, servertest.Asking(func(servertest.Question) servertest.Answer {
			t.Error("asked after the call")
			return servertest.Answer{Action: "accept"}
		}))
		c.Call("leave", struct{}{})
		close(answered)
		if err := <-ended; err == nil {
			t.Error("no error")
		}
	})
}

// A client that goes while the person is asked leaves others as they are.
func TestClientGoneWhileAsked(t *testing.T) {
	t.Parallel()
	a := newAsker()
	url := servertest.Serve(t, a.Server, server.HTTPOptions{})
	asked, gone := make(chan struct{}), make(chan struct{})
	c := servertest.Connect(t, url, servertest.Asking(func(servertest.Question) servertest.Answer {
		close(asked)
		<-gone
		return servertest.Answer{}
	}))
	p := c.CallAsync("ask", askIn{Questions: []string{"who"}})
	<-asked
	other := servertest.Connect(t, url, saying(servertest.Answer{Action: "accept"}))
	if r := other.Call("ask", askIn{Questions: []string{"who"}}); r.IsError {
		t.Errorf("another client: %s, %v", r.JSON, r.Err)
	}
	p.Cut()
	if err := <-a.ended; !errors.Is(err, server.ErrClientGone) {
		t.Errorf("the question ended with %v", err)
	}
	close(gone)
	if r := other.Call("echo", echoIn{Text: "x"}); r.IsError {
		t.Errorf("another client: %s, %v", r.JSON, r.Err)
	}
}

// A person who is asked when the test ends may answer at any time: the client
// then sends nothing to a session that has ended.
func TestPersonOutlivesTheTest(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	var persons sync.WaitGroup
	t.Run("session", func(t *testing.T) {
		overSessions(t, func(t *testing.T, transport servertest.Option) {
			asked := make(chan struct{})
			c := servertest.Start(t, newAsker().Server, transport, servertest.Asking(func(servertest.Question) servertest.Answer {
				defer persons.Done()
				close(asked)
				<-ended
				return servertest.Answer{Action: "accept"}
			}))
			persons.Add(1)
			p := c.CallAsync("ask", askIn{Questions: []string{"who"}})
			<-asked
			p.Cancel()
		})
	})
	close(ended)
	persons.Wait()
}
