package inputs_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func secretDoc() *item.DirectiveDoc {
	return &item.DirectiveDoc{Inputs: []item.Input{
		{Name: "token", Type: "string", Required: true, Secret: true},
		{Name: "password", Type: "string", Secret: true},
		{Name: "note", Type: "string"},
		{Name: "more", Type: "object"},
	}}
}

func TestValidateSecrets(t *testing.T) {
	t.Parallel()
	d := secretDoc()
	values, secrets, err := inputs.Validate(d, map[string]any{"token": " kept as it is ", "note": "{secret:token} stays"})
	if err != nil || !reflect.DeepEqual(values, map[string]any{"token": "{secret:token}", "note": "{secret:token} stays"}) ||
		!reflect.DeepEqual(secrets, map[string]string{"token": " kept as it is "}) {
		t.Errorf("%v, %v, %v", values, secrets, err)
	}
	if got := inputs.Secrets(d, values); !reflect.DeepEqual(got, []string{"token"}) {
		t.Errorf("secrets %q", got)
	}
	shown, err := json.Marshal(inputs.Shown(d, values))
	if err != nil || string(shown) != `{"note":"{secret:token} stays","token":{"secret":true}}` {
		t.Errorf("shown %s, %v", shown, err)
	}
	if got := inputs.Interpolate("{input:token} {input:password?}", values, nil); got != "{secret:token} " {
		t.Errorf("in a body: %s", got)
	}
	schema, err := json.Marshal(inputs.Schema(d))
	if err != nil || !strings.Contains(string(schema), `"token":{"minLength":8,"type":"string","writeOnly":true}`) {
		t.Errorf("schema %s, %v", schema, err)
	}
}

// TestShortestSecret: the shortest and the longest value are taken.
func TestShortestSecret(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"12345678", strings.Repeat("x", inputs.MaxSecret)} {
		if _, secrets, err := inputs.Validate(secretDoc(), map[string]any{"token": value}); err != nil || secrets["token"] != value {
			t.Errorf("%d bytes: %v", len(value), err)
		}
	}
}

// A value that cannot be taken is never repeated.
func TestRefusedSecrets(t *testing.T) {
	t.Parallel()
	const value = "hunter-22-is-it"
	tests := []struct {
		name  string
		given map[string]any
		want  string
	}{
		{"missing", map[string]any{"password": value}, "token is required"},
		{"null", map[string]any{"token": nil}, "token is required"},
		{"a list", map[string]any{"token": []any{value}}, "token must be a string"},
		{"an object", map[string]any{"token": map[string]any{value: 1}}, "token must be a string"},
		{"a number", map[string]any{"token": 8472359872395}, "token must be a string"},
		{"short", map[string]any{"token": "1234567"}, "at least 8 characters"},
		{"short but for spaces", map[string]any{"token": "  1234567  "}, "at least 8 characters"},
		{"long", map[string]any{"token": strings.Repeat(value, 10_000)}, "at most 65536 bytes"},
		{"NUL", map[string]any{"token": value + "\x00"}, "without NUL bytes"},
		{"no UTF-8", map[string]any{"token": value + "\xff"}, "valid UTF-8"},
		{"a placeholder", map[string]any{"token": "Bearer {secret:other}"}, "holds the placeholder"},
		{"part of a placeholder", map[string]any{"token": "secret:password"}, "cannot be told from"},
		{"beside", map[string]any{"token": value, "note": "it is " + value}, "note holds the value of token"},
		{"deep beside", map[string]any{"token": value, "more": map[string]any{"a": []any{value}}}, "more holds the value of token"},
		{"undeclared", map[string]any{"token": value, "tokn": value}, `"tokn" is not an input`},
	}
	for _, tt := range tests {
		values, secrets, err := inputs.Validate(secretDoc(), tt.given)
		invalid, ok := errors.AsType[*inputs.Error](err)
		if !ok || values != nil || secrets != nil {
			t.Errorf("%s: %v, %v, %v", tt.name, values, secrets, err)
			continue
		}
		told, _ := json.Marshal(invalid)
		if text := string(told) + err.Error(); !strings.Contains(text, tt.want) || strings.Contains(text, value) ||
			strings.Contains(text, "1234567") || strings.Contains(text, "84723598") {
			t.Errorf("%s: %s", tt.name, text)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9_.-]{1,20}`).Draw(t, "name")
		between := rapid.StringMatching(`[^{}]{0,9}`).Draw(t, "text")
		placeholder := inputs.Placeholder(name)
		text := between + placeholder + between + placeholder
		if got := inputs.Placeholders(text); !reflect.DeepEqual(got, []string{placeholder, placeholder}) {
			t.Fatalf("found %q", got)
		}
		if got := inputs.ReplacePlaceholders(text, func(string) string { return "{" }); got != between+"{"+between+"{" {
			t.Fatalf("replaced %q", got)
		}
	})
}
