package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// bomb is a schema whose definitions each refer to the next one twice.
func bomb(levels int, refer string) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range levels {
		fmt.Fprintf(&b, `"d%d":%s,`, i, strings.ReplaceAll(refer, "NEXT", fmt.Sprintf("#/$defs/d%d", i+1)))
	}
	fmt.Fprintf(&b, `"d%d":{}}}`, levels)
	return json.RawMessage(b.String())
}

// TestAttackSchemaBomb: the schema of a tool is written so that checking a small call against it takes longer than anybody lives. The tool is refused with the reason, and nothing is compared.
func TestAttackSchemaBomb(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60)
	for name, c := range map[string]struct {
		schema json.RawMessage
		args   string
	}{
		"doubling in place": {bomb(64, `{"allOf":[{"$ref":"NEXT"},{"$ref":"NEXT"}]}`), `{"a":1}`},
		"doubling below":    {json.RawMessage(`{"type":"object","allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`), nested},
		"by patterns":       {json.RawMessage(`{"type":"object","patternProperties":{"a":{"$ref":"#"},"a+":{"$ref":"#"}}}`), nested},
		"by anchors":        {json.RawMessage(`{"$anchor":"r","type":"object","anyOf":[{"properties":{"a":{"$ref":"#r"}}},{"additionalProperties":{"$ref":"#r"}}]}`), nested},
		"unique":            {json.RawMessage(`{"type":"object","properties":{"a":{"uniqueItems":true}}}`), `{"a":[` + strings.Repeat("1,", 100_000) + `1]}`},
	} {
		if err := Validate(c.schema, json.RawMessage(c.args)); !errors.Is(err, errHeavy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		schema json.RawMessage
		args   string
	}{
		"recursive": {json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#"}}}`), nested[:0] + `{"a":{"a":{}}}`},
		"long list": {json.RawMessage(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}`), `{"a":[` + strings.Repeat("1,", 50_000) + `1]}`},
		"true":      {json.RawMessage(`{"properties":{"a":true}}`), `{"a":1}`},
	} {
		if err := Validate(c.schema, json.RawMessage(c.args)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer","default":3},"b":{"type":"string"}}}`)
	for args, want := range map[string]string{`{}`: `{"a":3}`, `{"a":"4"}`: `{"a":4}`, `{"b":"x"}`: `{"a":3,"b":"x"}`} {
		if got, err := Fill(schema, json.RawMessage(args)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", args, got, err)
		}
	}
	if _, err := Fill(schema, json.RawMessage(`{"a":"x"}`)); !errors.As(err, new(*Fault)) {
		t.Error(err)
	}
}
