package server_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestStorm sends 10 000 broken lines with calls between them and expects every
// call to be answered, in full and once.
func TestStorm(t *testing.T) {
	t.Parallel()
	const broken = 10_000
	r := rand.New(rand.NewPCG(1, 2))
	valid := call(0, "echo", `{"text":"hi"}`)
	nested := strings.Repeat(`{"a":`, 10_001)
	makers := []func(i int) string{
		func(i int) string { return valid[:1+r.IntN(len(valid)-1)] },            // half sent
		func(i int) string { return strings.Repeat("\x00\xff", r.IntN(100)+1) }, // not text
		func(i int) string {
			return `{"jsonrpc":"2.0","id":"held","method":"tools/call","params":{"name":"block"}}`
		}, // id in use
		func(i int) string { return `[` + valid + `]` },
		func(i int) string { return `{"jsonrpc":"2.0","id":"p","method":"tools/call","params":7}` },
		func(i int) string { return "" },
		func(i int) string {
			return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":-1}}`
		},
		func(i int) string { return `{"jsonrpc":"2.0","id":1,"result":{}}` },
	}

	w := startWire(t, newServer())
	w.send(makers[2](0))
	for i := range broken {
		w.send(makers[i%len(makers)](i))
		if i%100 == 0 {
			w.send(call(1_000_000+i, "echo", `{"text":"hi"}`))
		}
		if i%200 == 0 {
			w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x","params":%s`, i, nested))
			w.send(`{"jsonrpc":"2.0","id":"n","method":"x","params":` + nested + "1" + strings.Repeat("}", 10_002))
		}
		if i%5000 == 0 {
			w.send(strings.Repeat("x", 11<<20))
		}
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"held"}}`)
	w.send(`{"jsonrpc":"2.0","id":"last","method":"ping"}`)
	w.await(`{"jsonrpc":"2.0","id":"last","result":{}}`)
	for i := 0; i < broken; i += 100 {
		w.await(answerTo(i))
	}
	if err := w.close(); err != nil {
		t.Fatalf("ServeStdio: %v", err)
	}

	out := w.output()
	for i := 0; i < broken; i += 100 {
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
