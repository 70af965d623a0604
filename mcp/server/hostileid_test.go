package server_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestAttackRequestID: a client sends request ids, method names and tokens that are no UTF-8, or numbers that nothing can hold. Every answer is a line of valid JSON, with a null id where none can be given back.
func TestAttackRequestID(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	long := strings.Repeat("x", 11<<20)
	for given, id := range map[string]string{
		`{"jsonrpc":"2.0","id":"a` + "\xff" + `","method":"ping"}`:                                       "null",
		`{"jsonrpc":"2.0","id":"` + "\xc3\x28" + `","method":"` + "\xff" + `"}`:                          "null",
		`{"jsonrpc":"2.0","id":7,"method":"p` + "\xff" + `ing"}`:                                         "7",
		`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"` + "\xff" + `"}}`:              "8",
		`{"jsonrpc":"2.0","id":9,"method":"ping","params":{"_meta":{"progressToken":"` + "\xff" + `"}}}`: "9",
		`{"jsonrpc":"2.0","id":1e999,"method":"ping"}`:                                                   "null",
		`{"jsonrpc":"2.0","id":` + strings.Repeat("9", 400) + `,"method":"ping"}`:                        "null",
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`:                                        "9007199254740993",
		`{"jsonrpc":"2.0","id":"\u0000","method":"ping"}`:                                                `"\u0000"`,
		`{"jsonrpc":"2.0","id":"y` + "\xff" + `","params":"` + long + `"}`:                               "null",
		`{"jsonrpc":"2.0","params":"` + long + `","id":"z` + "\xff" + `"}`:                               "null",
	} {
		var out bytes.Buffer
		if err := newServer().ServeStdio(t.Context(), strings.NewReader(given+"\n"), &out); err != nil {
			t.Fatal(err)
		}
		var answer struct{ ID json.RawMessage }
		line := strings.TrimSuffix(out.String(), "\n")
		if err := json.Unmarshal([]byte(line), &answer); err != nil || !utf8.ValidString(line) || strings.Contains(line, "\n") {
			t.Errorf("%.80q: %v: %.200q", given, err, line)
		}
		if string(answer.ID) != id {
			t.Errorf("%.80q: answered with the id %s, want %s", given, answer.ID, id)
		}
	}
}
