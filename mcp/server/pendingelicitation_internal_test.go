package server

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// However many calls wait for answers, they take bounded memory, and the
// youngest are kept.
func TestPendingElicitationsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s pendingElicitations
		var tokens []string
		for range maxPendingElicitations + 10 {
			tokens = append(tokens, s.keep(pendingElicitation{}))
			<-time.After(time.Millisecond)
		}
		if len(s.open) != maxPendingElicitations {
			t.Errorf("%d are kept, want %d", len(s.open), maxPendingElicitations)
		}
		for i, token := range tokens {
			if _, ok := s.take(token); ok != (i >= 10) {
				t.Errorf("%d is kept: %t", i, ok)
			}
		}
		s.keep(pendingElicitation{})
		<-time.After(2 * elicitationTTL)
		s.keep(pendingElicitation{})
		if len(s.open) != 1 {
			t.Errorf("%d are kept after their time", len(s.open))
		}
	})
}

func TestQuestionsThatAreWrong(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, message, schema string
		want                  string // in the error; empty: none
	}{
		{"no schema", "who", "", ""},
		{"all types", "who", `{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"number"},"c":{"type":"integer"},"d":{"type":"boolean"}}}`, ""},
		{"no message", "", "", "no message"},
		{"no JSON", "who", `{`, "schema"},
		{"no object", "who", `{"type":"string"}`, "object"},
		{"no properties", "who", `{"type":"object"}`, "object with properties"},
		{"nested", "who", `{"type":"object","properties":{"a":{"type":"object"}}}`, "a is not"},
		{"list", "who", `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`, "a is not"},
		{"two types", "who", `{"type":"object","properties":{"a":{"type":["string","null"]}}}`, "schema"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := ElicitRequest{Message: tt.message, Schema: json.RawMessage(tt.schema)}
			err := q.complete()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if err == nil && q.Key == "" {
				t.Error("no key")
			}
		})
	}
}

// Keys that are derived are equal for equal questions only.
func TestDerivedKeys(t *testing.T) {
	t.Parallel()
	key := func(message, schema string) string {
		q := ElicitRequest{Message: message, Schema: json.RawMessage(schema)}
		if err := q.complete(); err != nil {
			t.Fatal(err)
		}
		return q.Key
	}
	const schema = `{"type":"object","properties":{"a":{"type":"string"}}}`
	first, again := key("who", ""), key("who", "")
	if first != again || first == key("what", "") || first == key("who", schema) {
		t.Error("keys differ for equal questions, or are equal for others")
	}
}

// A result is one that handlers rely on, whatever a client answers.
func FuzzAnswer(f *testing.F) {
	q := ElicitRequest{Message: "who", Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","maxLength":9},"age":{"type":"integer"}},"required":["name"]}`)}
	for _, seed := range []string{
		`{"action":"accept","content":{"name":"Ada","age":36}}`, `{"action":"accept","content":{"name":"Ada","age":1e999999}}`,
		`{"action":"decline"}`, `{"action":"cancel","content":[]}`, `{"action":7}`, `null`, ``, `[]`, `{"Action":"accept","CONTENT":{"name":"x","name":7}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		result, err := q.parse(data)
		switch {
		case err != nil:
			if !errors.Is(err, ErrBadAnswer) || result.Action != "" || result.Content != nil {
				t.Errorf("%+v, %v", result, err)
			}
		case result.Action == ActionAccept:
			if err := tool.Validate(q.Schema, result.Content); err != nil {
				t.Errorf("content %s: %v", result.Content, err)
			}
		case result.Action != ActionDecline && result.Action != ActionCancel || result.Content != nil:
			t.Errorf("%+v", result)
		}
	})
}
