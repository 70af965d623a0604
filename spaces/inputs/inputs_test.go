package inputs_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func doc() *item.DirectiveDoc {
	return &item.DirectiveDoc{Inputs: []item.Input{
		{Name: "topic", Type: "string", Required: true, Description: "What about"},
		{Name: "count", Type: "integer", Required: true, Default: int64(3)},
		{Name: "ratio", Type: "number"},
		{Name: "loud", Type: "boolean", Default: false},
		{Name: "list", Type: "array", Default: []any{"a"}},
		{Name: "map", Type: "object"},
		{Name: "mood", Type: "string", Enum: []string{"calm", "wild"}},
		{Name: "level", Type: "integer", Enum: []string{"1", "2"}},
	}}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	defaults := map[string]any{"topic": "x", "count": int64(3), "loud": false, "list": []any{"a"}}
	with := func(key string, value any) map[string]any {
		m := map[string]any{}
		for k, v := range defaults {
			m[k] = v
		}
		m[key] = value
		return m
	}
	tests := []struct {
		name  string
		given map[string]any
		want  map[string]any
	}{
		{"defaults", map[string]any{"topic": "x"}, defaults},
		{"whole number as integer", map[string]any{"topic": "x", "count": 5.0}, with("count", int64(5))},
		{"integer from JSON", map[string]any{"topic": "x", "count": json.Number("5.0")}, with("count", int64(5))},
		{"integer from Go", map[string]any{"topic": "x", "count": 5}, with("count", int64(5))},
		{"large integer", map[string]any{"topic": "x", "count": json.Number("9007199254740993")}, with("count", int64(9007199254740993))},
		{"integer as number", map[string]any{"topic": "x", "ratio": 2}, with("ratio", 2.0)},
		{"null is not given", map[string]any{"topic": "x", "count": nil, "mood": nil}, defaults},
		{"empty string is given", map[string]any{"topic": ""}, with("topic", "")},
		{"Go slices", map[string]any{"topic": "x", "list": []string{"p", "q"}}, with("list", []any{"p", "q"})},
		{"nested numbers", map[string]any{"topic": "x", "map": map[string]any{"a": []any{1.0, 2.5}}},
			with("map", map[string]any{"a": []any{int64(1), 2.5}})},
		{"of the enum", map[string]any{"topic": "x", "mood": "wild"}, with("mood", "wild")},
		{"text for a whole number", map[string]any{"topic": "x", "count": "5"}, with("count", int64(5))},
		{"text for a number", map[string]any{"topic": "x", "ratio": " 2.5 "}, with("ratio", 2.5)},
		{"text for a truth", map[string]any{"topic": "x", "loud": "true"}, with("loud", true)},
		{"a text for a list", map[string]any{"topic": "x", "list": "one"}, with("list", []any{"one"})},
		{"JSON for a list", map[string]any{"topic": "x", "list": `["p", 2]`}, with("list", []any{"p", int64(2)})},
		{"JSON for an object", map[string]any{"topic": "x", "map": `{"a":1}`}, with("map", map[string]any{"a": int64(1)})},
		{"number for text", map[string]any{"topic": 3}, with("topic", "3")},
		{"capitals of the enum", map[string]any{"topic": "x", "mood": "Wild"}, with("mood", "wild")},
		{"text of a number of the enum", map[string]any{"topic": "x", "level": "2"}, with("level", int64(2))},
		{"number of the enum", map[string]any{"topic": "x", "level": 2.0}, with("level", int64(2))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := inputs.Validate(doc(), tt.given)
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %#v, %v, want %#v", got, err, tt.want)
			}
		})
	}
}

func TestValidateErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		given    map[string]any
		problems []string // words of each problem, in order
	}{
		{"missing", nil, []string{"topic is required"}},
		{"null for a required one", map[string]any{"topic": nil}, []string{"topic is required"}},
		{"undeclared", map[string]any{"topic": "x", "b": 1, "a": 2}, []string{`"a" is not an input`, `"b" is not an input`}},
		{"truth for text", map[string]any{"topic": true}, []string{"topic: expected string, but got boolean"}},
		{"words for number", map[string]any{"topic": "x", "count": "three"}, []string{"count: expected integer, but got string"}},
		{"half a list", map[string]any{"topic": "x", "list": "[1,"}, []string{"list: expected array, but got string"}},
		{"fraction", map[string]any{"topic": "x", "count": 3.5}, []string{"count: expected integer, but got number"}},
		{"beyond int64", map[string]any{"topic": "x", "count": 1e30}, []string{"count: the integer is out of range"}},
		{"beyond everything", map[string]any{"topic": "x", "ratio": json.Number("1e999999999")}, []string{"ratio: the number"}},
		{"NaN", map[string]any{"topic": "x", "ratio": math.NaN()}, []string{"ratio: "}},
		{"no JSON", map[string]any{"topic": func() {}}, []string{"topic: "}},
		{"not of the enum", map[string]any{"topic": "x", "mood": "sad"}, []string{`mood: value must be one of "calm", "wild"`}},
		{"everything at once", map[string]any{"x": 1, "loud": "yes", "list": map[string]any{}, "map": []any{}},
			[]string{`"x"`, "topic is required", "loud: ", "list: ", "map: "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := inputs.Validate(doc(), tt.given)
			checkProblems(t, err, tt.problems)
			if got != nil {
				t.Errorf("got %v beside the error", got)
			}
		})
	}
}

func checkProblems(t *testing.T, err error, problems []string) {
	t.Helper()
	var e *inputs.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *inputs.Error", err)
	}
	if len(e.Problems) != len(problems) {
		t.Fatalf("problems %q, want %q", e.Problems, problems)
	}
	for i, words := range problems {
		if !strings.Contains(e.Problems[i], words) {
			t.Errorf("problem %q does not say %q", e.Problems[i], words)
		}
		if !strings.Contains(err.Error(), words) {
			t.Errorf("message %q does not say %q", err, words)
		}
	}
	if len(e.Declared) != len(doc().Inputs) {
		t.Errorf("declared %+v", e.Declared)
	}
}

func TestDeclaredAsJSON(t *testing.T) {
	t.Parallel()
	_, _, err := inputs.Validate(&item.DirectiveDoc{Inputs: append(doc().Inputs[:2], doc().Inputs[6:]...)}, nil)
	var e *inputs.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	got, err := json.Marshal(e.Declared)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"name":"topic","type":"string","required":true,"description":"What about"},` +
		`{"name":"count","type":"integer","required":true,"default":3},` +
		`{"name":"mood","type":"string","required":false,"enum":["calm","wild"]},{"name":"level","type":"integer","required":false,"enum":[1,2]}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestValidateCopies(t *testing.T) {
	t.Parallel()
	d := doc()
	given := map[string]any{"topic": "x", "map": map[string]any{"k": "v"}}
	got, _, err := inputs.Validate(d, given)
	if err != nil {
		t.Fatal(err)
	}
	got["map"].(map[string]any)["k"] = "changed"
	got["list"].([]any)[0] = "changed"
	if given["map"].(map[string]any)["k"] != "v" || d.Inputs[4].Default.([]any)[0] != "a" {
		t.Error("the result shares memory with what was given or declared")
	}
}

func TestFromStrings(t *testing.T) {
	t.Parallel()
	got, err := inputs.FromStrings(doc(), map[string]string{
		"topic": "7", "count": "7", "ratio": "0.5", "loud": "true", "list": `[1, "b"]`, "map": `{"a": {}}`,
	})
	want := map[string]any{
		"topic": "7", "count": int64(7), "ratio": 0.5, "loud": true, "list": []any{int64(1), "b"}, "map": map[string]any{"a": map[string]any{}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, %v", got, err)
	}
	if _, _, err := inputs.Validate(doc(), got); err != nil {
		t.Errorf("what was read does not validate: %v", err)
	}
	_, err = inputs.FromStrings(doc(), map[string]string{"count": "many", "list": "a,b", "nope": "1"})
	checkProblems(t, err, []string{`"nope"`, "count: ", "list: "})
}

func TestSchema(t *testing.T) {
	t.Parallel()
	d := doc()
	d.Inputs = append(d.Inputs[:2:2], d.Inputs[6:]...)
	got, err := json.Marshal(inputs.Schema(d))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"additionalProperties":false,"properties":{` +
		`"count":{"default":3,"type":"integer"},` +
		`"level":{"enum":[1,2],"type":"integer"},` +
		`"mood":{"enum":["calm","wild"],"type":"string"},` +
		`"topic":{"description":"What about","type":"string"}},` +
		`"required":["topic"],"type":"object"}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	empty, err := json.Marshal(inputs.Schema(&item.DirectiveDoc{}))
	if err != nil || string(empty) != `{"additionalProperties":false,"properties":{},"type":"object"}` {
		t.Errorf("without inputs: %s, %v", empty, err)
	}
}
