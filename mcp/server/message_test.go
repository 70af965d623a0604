package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

var messageSeeds = []string{
	`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
	`{"jsonrpc":"2.0","id":"a\u00e9","method":"tools/call","params":{"name":"x","_meta":{"progressToken":1e3}}}`,
	`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
	`{"jsonrpc":"2.0","id":"rye-1","result":{"roots":[]}}`,
	`{"jsonrpc":"2.0","id":"rye-1","result":{"action":"accept","content":{"name":"x"}}}`,
	`{"jsonrpc":"2.0","id":"rye-1","error":{"code":-32601,"message":"Method not found"}}`,
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","requestState":"x","inputResponses":{"x":{"action":"decline"}},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`,
	`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`,
	"\xef\xbb\xbf{\"ID\":1,\"method\":\"\xff\"}\r",
	`[{"jsonrpc":"2.0"}]`,
	`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"tools/list"},{"jsonrpc":"2.0","method":"x"}]`,
	`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":null}`,
	`{"jsonrpc":"2.0","id":1e999999999,"method":"ping"}`,
	" \t",
	"",
}

// A batch is an array of one to so many elements, each as it was written.
func FuzzSplitBatch(f *testing.F) {
	for _, seed := range []string{`[1,{"a":[]}]`, "\xef\xbb\xbf [ ] ", `[1 2]`, `[1]]`, `[`, `[1,]`, `[` + strings.Repeat("0,", maxBatch) + `0]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !isBatch(data) {
			return
		}
		var want []json.RawMessage
		valid := json.Unmarshal(trimmed(data), &want) == nil && len(want) > 0 && len(want) <= maxBatch
		got, refusal := splitBatch(data)
		if valid != (refusal == nil) {
			t.Fatalf("valid: %t, refusal %+v", valid, refusal)
		}
		if valid && !slices.EqualFunc(got, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Errorf("%s instead of %s", got, want)
		}
	})
}

// An accepted message is one that the rest of the package relies on, and every refusal
// can be written as an answer.
func FuzzParseMessage(f *testing.F) {
	for _, seed := range messageSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		msg, refusal := parseMessage(data)
		if refusal != nil {
			if refusal.Code > mcp.INVALID_REQUEST+100 || refusal.Message == "" {
				t.Errorf("refusal %+v", refusal)
			}
			answer, err := encodeError(msg.id, refusal)
			if err != nil || !json.Valid(answer) || bytes.Count(answer, []byte("\n")) != 1 {
				t.Errorf("answer %q, %v", answer, err)
			}
			return
		}
		switch msg.kind {
		case kindBlank:
			if len(bytes.TrimSpace(bytes.TrimPrefix(data, utf8BOM))) != 0 {
				t.Error("not blank")
			}
		case kindRequest:
			if msg.id.isZero() || msg.method == "" {
				t.Errorf("request without id or method: %+v", msg)
			}
			if answer, err := encodeResult(msg.id, nil); err != nil || !json.Valid(answer) {
				t.Errorf("answer %q, %v", answer, err)
			}
			if msg.token != nil && !json.Valid(msg.token) {
				t.Errorf("progress token %s", msg.token)
			}
		case kindNotification:
			if !msg.id.isZero() || msg.method == "" {
				t.Errorf("notification with id or without method: %+v", msg)
			}
		case kindResponse:
			if msg.method != "" {
				t.Errorf("response with method: %+v", msg)
			}
		}
	})
}

// Serving ends in order, whatever comes in, and every line that goes out is one message.
func FuzzServeStdio(f *testing.F) {
	for _, seed := range messageSeeds {
		f.Add([]byte(seed + "\n" + messageSeeds[0] + "\n"))
	}
	s := New(Options{Version: "fuzz"})
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		if err := s.ServeStdio(t.Context(), bytes.NewReader(data), &out); err != nil {
			t.Fatal(err)
		}
		for {
			answer, err := out.ReadBytes('\n')
			if errors.Is(err, io.EOF) && len(answer) == 0 {
				return
			}
			var m struct {
				JSONRPC string          `json:"jsonrpc"`
				ID      json.RawMessage `json:"id"`
				Result  json.RawMessage `json:"result"`
				Error   *rpcError       `json:"error"`
			}
			if err := json.Unmarshal(answer, &m); err != nil || m.JSONRPC != "2.0" || (m.Result == nil) == (m.Error == nil) {
				t.Fatalf("answer %q, %v", answer, err)
			}
		}
	})
}

func TestEqualIDsHaveEqualKeys(t *testing.T) {
	t.Parallel()
	tests := []struct {
		a, b  string
		equal bool
	}{
		{`"é"`, `"\u00e9"`, true},
		{`1`, `"1"`, false},
		{`9007199254740992`, `9007199254740993`, false},
		{`""`, `"\""`, false},
	}
	for _, tt := range tests {
		a, errA := parseID(json.RawMessage(tt.a))
		b, errB := parseID(json.RawMessage(tt.b))
		if errA != nil || errB != nil || (a.key == b.key) != tt.equal {
			t.Errorf("%s and %s: keys %q and %q, %v, %v", tt.a, tt.b, a.key, b.key, errA, errB)
		}
	}
}

// A client's span is taken from _meta where it is well-formed; anything else there
// changes nothing about the request.
func TestTraceparentOfARequest(t *testing.T) {
	t.Parallel()
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for given, want := range map[string]string{
		`"` + good + `"`: good, `"cc` + good[2:] + `-later"`: good, `""`: "", `null`: "", `7`: "", `{}`: "", `["` + good + `"]`: "",
		`"` + strings.ToUpper(good) + `"`: "", `"` + good + `\n"`: "", `"` + strings.Repeat("0", 10_000) + `"`: "", `"00-` + strings.Repeat("0", 32) + good[35:] + `"`: "",
	} {
		m, err := parseMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"traceparent":` + given + `,"progressToken":3}}}`))
		if err != nil || m.traceparent != want || string(m.token) != "3" {
			t.Errorf("%.80s: %q, token %s, %v", given, m.traceparent, m.token, err)
		}
	}
}
