package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// Parts of a storm.
const (
	stormSize = 10_000
	validCall = `{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}`
	// held is a call that stays in flight: sent again, its id is in use.
	held = `{"jsonrpc":"2.0","id":"held","method":"tools/call","params":{"name":"block"}}`
)

// stormMakers make the messages of a storm, of which none is a call that works.
func stormMakers(r *rand.Rand) []func() string {
	deep := strings.Repeat(`{"a":`, 10_001)
	fixed := func(message string) func() string { return func() string { return message } }
	return []func() string{
		func() string { return validCall[:1+r.IntN(len(validCall)-1)] },    // half sent
		func() string { return strings.Repeat("\x00\xff", r.IntN(100)+1) }, // not text
		fixed(held),
		fixed(`[` + validCall + `]`),
		fixed(`{"jsonrpc":"2.0","id":"p","method":"tools/call","params":7}`),
		fixed(""),
		fixed(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":-1}}`),
		fixed(`{"jsonrpc":"2.0","id":1,"result":{}}`),
		fixed(`{"jsonrpc":"2.0","id":"rye-1","result":{"action":"accept","content":{}}}`),
		func() string { // deeply nested, complete only with luck
			if r.IntN(20) > 0 {
				return `{"jsonrpc":"2.0","id":"n","method":"x","params":{"a":[[[[]]]]}}`
			}
			return `{"jsonrpc":"2.0","id":"n","method":"x","params":` + deep + "1" + strings.Repeat("}", 10_001+r.IntN(2))
		},
	}
}

// TestStorm sends 10 000 broken lines with calls between them and expects every
// call to be answered, in full and once.
func TestStorm(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	makers := stormMakers(rand.New(rand.NewPCG(1, 2)))
	w := startWire(t, newServer())
	w.send(held)
	for i := range stormSize {
		w.send(makers[i%len(makers)]())
		if i%100 == 0 {
			w.send(call(1_000_000+i, "echo", `{"text":"hi"}`))
		}
		if i%5000 == 0 {
			w.send(strings.Repeat("x", 12<<20))
		}
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"held"}}`)
	w.send(`{"jsonrpc":"2.0","id":"last","method":"ping"}`)
	w.await(`{"jsonrpc":"2.0","id":"last","result":{}}`)
	for i := 0; i < stormSize; i += 100 {
		w.await(answerTo(i))
	}
	if err := w.close(); err != nil {
		t.Fatalf("ServeStdio: %v", err)
	}

	out := w.output()
	for i := 0; i < stormSize; i += 100 {
		if n := strings.Count(out, answerTo(i)); n != 1 {
			t.Errorf("call %d has %d answers", i, n)
		}
	}
	if strings.Contains(out, `"id":"held","result"`) {
		t.Error("the cancelled call was answered")
	}
}

// answerTo is how the answer to call i begins.
func answerTo(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":`, 1_000_000+i) }

// TestHTTPStorm is the same over HTTP, from several clients at once, with
// connections that break off.
func TestHTTPStorm(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const clients = 8
	s, seen := newBlocking(clients)
	server.Add(s, fail)
	url := servertest.Serve(t, s, server.HTTPOptions{})
	var storm sync.WaitGroup
	for client := range clients {
		storm.Go(func() { stormOver(t, url, rand.New(rand.NewPCG(uint64(client), 3)), stormSize/clients, seen.started) })
	}
	storm.Wait()
	for range clients {
		if err := <-seen.ended; !errors.Is(err, server.ErrClientGone) {
			t.Errorf("the held call ended with %v", err)
		}
	}
	if r := servertest.Connect(t, url).Call("echo", echoIn{Text: "calm", Repeat: 1}); r.IsError {
		t.Errorf("after the storm: %s", r.JSON)
	}
}

// stormOver is one client's part of the storm. Every hundredth request is a
// call, which must work.
func stormOver(t *testing.T, url string, r *rand.Rand, messages int, started <-chan string) {
	b := browse(t, url)
	b.open()
	ctx, hangUp := context.WithCancel(t.Context())
	heldEnded := make(chan struct{})
	go func() {
		defer close(heldEnded)
		if resp, err := b.send(ctx, "POST /mcp", strings.NewReader(held)); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // until the test hangs up
			_ = resp.Body.Close()
		}
	}()
	<-started
	makers := stormMakers(r)
	for i := range messages {
		if i%100 == 0 {
			if got := b.do("POST /mcp", call(i, "echo", `{"text":"hi"}`)); !strings.Contains(got.body, fmt.Sprintf(`"id":%d,"result":`, i)) {
				t.Errorf("call %d: %+v", i, got)
			}
		}
		if i%50 == 0 {
			breakOff(t, b, i%100 == 0)
		}
		if i == 0 {
			if got := b.do("POST /mcp", strings.Repeat("x", 12<<20)); got.status != http.StatusRequestEntityTooLarge {
				t.Errorf("12 MB: %+v", got)
			}
		}
		if got := b.do("POST /mcp", makers[i%len(makers)]()); got.status >= 500 || strings.Contains(got.body, `"result"`) {
			t.Errorf("broken message %d: %+v", i, got)
		}
	}
	hangUp()
	<-heldEnded
}

// breakOff sends half a request: of its headers, or of its body.
func breakOff(t *testing.T, b *browser, inHeader bool) {
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Error(err)
		return
	}
	request := "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Session-Id: " + b.session +
		"\r\nContent-Length: 1000\r\n\r\n" + validCall
	if inHeader {
		request = request[:40]
	}
	if _, err := io.WriteString(c, request); err != nil {
		t.Error(err)
	}
	_ = c.Close()
}
