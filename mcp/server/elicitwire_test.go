package server_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
)

const declareForms = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`

// askWho is the call that the wire tests make, and firstQuestion what it asks.
var (
	askWho        = call(1, "ask", `{"questions":["who"]}`)
	firstQuestion = `{"jsonrpc":"2.0","id":"rye-1","method":"elicitation/create","params":{"message":"who","requestedSchema":{"type":"object","properties":{}}}}` + "\n"
)

// respondTo is the response to question n.
func respondTo(n int, action string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"rye-%d","result":{"action":%q}}`, n, action)
}

func TestStdinEndsWhileAsked(t *testing.T) {
	t.Parallel()
	a := newAsker()
	w := startWire(t, a.Server)
	w.send(declareForms)
	w.send(askWho)
	w.await(firstQuestion)
	if err := w.close(); err != nil {
		t.Errorf("ServeStdio: %v", err)
	}
	if err := <-a.ended; !errors.Is(err, server.ErrClientGone) {
		t.Errorf("the question ended with %v", err)
	}
}

// Responses of other clients, of other ids, and further ones do not count.
func TestOnlyTheRightResponseCounts(t *testing.T) {
	t.Parallel()
	a := newAsker()
	url := servertest.Serve(t, a.Server, server.HTTPOptions{})
	asked, done := make(chan struct{}), make(chan struct{})
	c := servertest.Connect(t, url, servertest.Asking(func(servertest.Question) servertest.Answer {
		close(asked)
		<-done
		return servertest.Answer{Action: "accept"}
	}))
	p := c.CallAsync("ask", askIn{Questions: []string{"who"}})
	<-asked
	stranger := browse(t, url)
	stranger.open()
	for n := range 4 {
		if r := stranger.do("POST /mcp", respondTo(n, "decline")); r.status != http.StatusAccepted {
			t.Errorf("response of another session: %+v", r)
		}
	}
	if r := stranger.do("POST /mcp", respondTo(1, "decline"), "Mcp-Session-Id"); r.status != http.StatusBadRequest {
		t.Errorf("response without session: %+v", r)
	}
	close(done)
	if r := p.Result(); !strings.Contains(string(r.JSON), `"answers":["accept{}"]`) {
		t.Errorf("got %s, %v", r.JSON, r.Err)
	}
}

// exchangeWho sends a call that asks, and then lines, after a handshake; it
// returns what the server writes after the handshake.
func exchangeWho(t *testing.T, handshake string, lines ...string) (got string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := startWire(t, newAsker().Server)
		w.send(handshake)
		for _, line := range append([]string{askWho}, lines...) {
			w.send(line)
			synctest.Wait()
		}
		if err := w.close(); err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
		_, got, _ = strings.Cut(w.output(), "\n")
	})
	return got
}

func TestElicitOnTheWire(t *testing.T) {
	t.Parallel()
	declaring := func(forms string) string { return strings.Replace(declareForms, `{"elicitation":{}}`, forms, 1) }
	const accepted, unsupported = `"answers":["accept{}"]`, `"code":"unsupported"`
	tests := []struct {
		name, handshake string
		lines           []string
		asks            bool
		want            string
	}{
		{"first response counts", declareForms, []string{respondTo(1, "accept"), respondTo(1, "decline")}, true, accepted},
		{"other ids", declareForms, []string{respondTo(0, "decline"), `{"jsonrpc":"2.0","id":1,"result":{"action":"decline"}}`, respondTo(1, "accept")}, true, accepted},
		{"as a batch", strings.Replace(declareForms, "2025-11-25", "2025-03-26", 1), []string{`[` + ping + `,` + respondTo(1, "accept") + `]`}, true, accepted},
		{"forms", declaring(`{"elicitation":{"form":{},"url":{}}}`), []string{respondTo(1, "accept")}, true, accepted},
		{"pages only", declaring(`{"elicitation":{"url":{}}}`), nil, false, unsupported},
		{"null", declaring(`{"elicitation":null}`), nil, false, unsupported},
		{"no result", declareForms, []string{`{"jsonrpc":"2.0","id":"rye-1","result":null}`}, true, `"code":"tool_failed"`},
		{"a list", declareForms, []string{`{"jsonrpc":"2.0","id":"rye-1","result":[]}`}, true, `"code":"tool_failed"`},
		{"huge", declareForms, []string{`{"jsonrpc":"2.0","id":"rye-1","result":{"action":"accept","content":{"x":"` + strings.Repeat("x", 70_000) + `"}}}`}, true, `at most 65536`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := exchangeWho(t, tt.handshake, tt.lines...)
			if strings.HasPrefix(got, firstQuestion) != tt.asks || strings.Count(got, `"id":1,"result"`) == 0 || !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// An answer to a question that was withdrawn is no answer to the next.
func TestLateAnswerIsIgnored(t *testing.T) {
	t.Parallel()
	got := exchangeWho(t, declareForms,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		call(2, "ask", `{"questions":["what"]}`), respondTo(1, "decline"), respondTo(2, "accept"))
	withdrawn := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"rye-1"}}` + "\n"
	if !strings.HasPrefix(got, firstQuestion+withdrawn) || strings.Count(got, withdrawn) != 1 || !strings.Contains(got, `"answers":["accept{}"]`) {
		t.Errorf("got %s", got)
	}
}

// Progress that was reported before a question is read before it.
func TestProgressComesBeforeTheQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := startWire(t, newAsker().Server)
		w.send(declareForms)
		w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"questions":["a","b"]},"_meta":{"progressToken":7}}}`)
		synctest.Wait()
		w.send(respondTo(1, "accept")) // within the pause after the first report
		synctest.Wait()
		out := w.output()
		for _, question := range []string{"a", "b"} {
			before, _, ok := strings.Cut(out, `"message":"`+question+`"`)
			if !ok || !strings.Contains(before, "before "+question) {
				t.Errorf("question %s before its report: %s", question, out)
			}
		}
		if err := w.close(); err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
	})
}

// A client that reads one JSON object in answer to a POST is asked on the
// stream it has open, if it has one.
func TestElicitOfClientsWithoutEvents(t *testing.T) {
	t.Parallel()
	b := browse(t, servertest.Serve(t, newAsker().Server, server.HTTPOptions{}))
	b.session = b.do("POST /mcp", declareForms).header.Get("Mcp-Session-Id")
	if r := b.do("POST /mcp", askWho, "Accept: application/json"); !strings.Contains(r.body, `"code":"unsupported"`) {
		t.Errorf("without stream: %+v", r)
	}
	if r := b.do("POST /mcp", call(1, "can", "{}"), "Accept: application/json"); !strings.Contains(r.body, `\"can\":false`) {
		t.Errorf("without stream: %+v", r)
	}
	stream, err := b.send(t.Context(), "GET /mcp", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }()
	answer := make(chan response)
	go func() { answer <- b.do("POST /mcp", askWho, "Accept: application/json") }()
	want := event + firstQuestion
	if got := make([]byte, len(want)); !readAll(stream.Body, got) || string(got) != want {
		t.Errorf("on the stream: %q", got)
	}
	b.do("POST /mcp", respondTo(1, "accept"))
	if r := <-answer; !strings.Contains(r.body, `accept{}`) {
		t.Errorf("with stream: %+v", r)
	}
}

func readAll(r io.Reader, data []byte) bool {
	_, err := io.ReadFull(r, data)
	return err == nil
}

// Outside of calls there is nobody to ask.
func TestElicitOutsideOfCalls(t *testing.T) {
	t.Parallel()
	if server.CanElicit(t.Context()) {
		t.Error("CanElicit outside of calls")
	}
	if _, err := server.Elicit(t.Context(), server.ElicitRequest{Message: "who"}); !errors.Is(err, server.ErrNoElicitation) {
		t.Errorf("Elicit outside of calls: %v", err)
	}
}
