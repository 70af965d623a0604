package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustSchema[T any](t testing.TB) json.RawMessage {
	t.Helper()
	s, err := SchemaFor[T]()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A missing argument that can only be one of a few is named with those.
func TestMissingOneOf(t *testing.T) {
	t.Parallel()
	type kinds struct {
		Kind string `json:"kind" enum:"decision,discovery"`
	}
	if got, want := fmt.Sprint(Validate(mustSchema[kinds](t), json.RawMessage(`{}`))), `missing property "kind" (one of "decision", "discovery")`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	schema := mustSchema[sample](t)
	cases := []struct{ name, args, want string }{
		{"fits", `{"path":"a","mode":"any","limit":3,"spend":0.5,"params":{"x":[1]},"any":null}`, ""},
		{"missing", `{}`, `missing property "path" (where)`},
		{"slip of the pen", `{"path":"a","pth":"x"}`, `unknown property "pth", did you mean "path"`},
		{"other case", `{"Path":"a"}`, `missing property "path" (where); unknown property "Path", did you mean "path"`},
		{"wrong type", `{"path":"a","limit":"three"}`, `"limit" must be integer, got string`},
		{"fraction", `{"path":"a","limit":1.5}`, `"limit" must be integer, got number`},
		{"null", `{"path":null}`, `"path" must be string, got null`},
		{"enum", `{"path":"a","mode":"some"}`, `"mode" must be one of "all", "any", got "some"`},
		{"enum in a list", `{"path":"a","kinds":["a","c"]}`, `"kinds[1]" must be one of "a", "b", got "c"`},
		{"nested", `{"path":"a","changes":[{"line_id":"x"},{"lineid":"x"}]}`,
			`missing property "line_id" in "changes[1]" (id of a line); unknown property "lineid" in "changes[1]", did you mean "line_id"`},
		{"nested bound", `{"path":"a","changes":[{"line_id":"x","count":0}]}`, `"changes[0].count" must be >= 1 but found 0`},
		{"several", `{"path":[],"make":"yes"}`, `"make" must be boolean, got string; "path" must be string, got array`},
		{"array", `["a"]`, `arguments must be a JSON object, got array`},
		{"cut short", `{"path":`, `arguments are not valid JSON: unexpected EOF`},
		{"nothing", ``, `arguments are not valid JSON: empty`},
		{"two values", `{"path":"a"} {}`, `arguments are not valid JSON: more than one value`},
		{"huge number", `{"path":"a","spend":1e999999999}`, `arguments are not valid JSON: number 1e999999999 is out of range`},
		{"tiny number", `{"path":"a","spend":1e-999999999}`, `arguments are not valid JSON: number 1e-999999999 is too close to zero`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := Validate(schema, json.RawMessage(c.args))
			if c.want == "" {
				if err != nil {
					t.Fatalf("got %v, want no error", err)
				}
				return
			}
			f, ok := errors.AsType[*Fault](err)
			if !ok {
				t.Fatalf("got %v (%T), want a fault", err, err)
			}
			if f.Code != CodeBadArguments || f.Message != c.want {
				t.Errorf("got %s: %s\nwant %s: %s", f.Code, f.Message, CodeBadArguments, c.want)
			}
			if len(f.Details) > 0 {
				t.Errorf("the fault carries %v", f.Details)
			}
		})
	}
}

func TestValidateWordsForOwnSchemas(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, schema, args, want string }{
		{"no properties at all", `{"type":"object","additionalProperties":false}`, `{"a":1}`, `unknown property "a", none is accepted`},
		{"valid names", `{"properties":{"alpha":{},"beta":{}},"additionalProperties":false}`, `{"zzzzzzz":1}`,
			`unknown property "zzzzzzz", valid are "alpha", "beta"`},
		{"any of", `{"anyOf":[{"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`, `{"b":1}`,
			`the arguments must fit one of the allowed forms: (1) missing property "a" or (2) "b" must be string, got integer`},
		{"one of, both", `{"oneOf":[{"type":"object"},{"type":"object"}]}`, `{}`, `exactly one`},
		{"reference within", `{"$defs":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"a":"x"}`,
			`"a" must be integer, got string`},
		{"odd names", `{"properties":{"a/b~c d":{"type":"integer"}}}`, `{"a/b~c d":"x"}`, `"a/b~c d" must be integer, got string`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := Validate(json.RawMessage(c.schema), json.RawMessage(c.args))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestValidateRefusesSchemas(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"not JSON":       `{`,
		"not a schema":   `{"type":"strin"}`,
		"reads a file":   `{"$ref":"file:///etc/passwd"}`,
		"reads a URL":    `{"$ref":"http://127.0.0.1:1/x.json"}`,
		"bad pattern":    `{"properties":{"a":{"pattern":"("}}}`,
		"endless number": `{"minimum":1e99999999}`,
	} {
		err := Validate(json.RawMessage(schema), json.RawMessage(`{"a":1}`))
		if _, fault := errors.AsType[*Fault](err); err == nil || fault {
			t.Errorf("%s: got %v, want a plain error: it is not the caller's mistake", name, err)
		}
	}
}

func TestManyProblemsAreBounded(t *testing.T) {
	t.Parallel()
	var args strings.Builder
	args.WriteString(`{"path":"a"`)
	for i := range 500 {
		args.WriteString(`,"` + fmt.Sprintf("zzzzzzzzzzzz%d", i) + `":1`)
	}
	args.WriteString(`}`)
	err := Validate(mustSchema[sample](t), json.RawMessage(args.String()))
	if err == nil || !strings.HasSuffix(err.Error(), "and 490 more problems") || len(err.Error()) > 4000 {
		t.Errorf("got %d bytes: %v", len(err.Error()), err)
	}
}

// The right name is offered for any that is misspelt by one letter.
func TestNearestFindsOneEdit(t *testing.T) {
	t.Parallel()
	names := []string{"path", "content", "create_dirs", "start_line_id", "end_line_id"}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "name")
		at := rapid.IntRange(0, len(name)-1).Draw(t, "at")
		slip := name[:at] + rapid.SampledFrom([]string{"", "q", name[at:at+1] + "q"}).Draw(t, "instead") + name[at+1:]
		if got := Nearest(slip, names); got != name {
			t.Fatalf("nearest(%q) = %q, want %q", slip, got, name)
		}
	})
}

func FuzzValidate(f *testing.F) {
	f.Add(sampleSchema, `{"path":"a"}`)
	f.Add(sampleSchema, `{"path":1,"changes":[{"count":0}]}`)
	f.Add(`{"multipleOf":0.1,"minimum":-5}`, `{"a":0e99999999}`)
	f.Add(`{"$defs":{"a":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, `{}`)
	f.Add(`{"patternProperties":{"^x":{"type":"null"}},"additionalProperties":false}`, `{"x":1,"y":2}`)
	f.Add(`{"properties":{"a":{"anyOf":[{"enum":[1]},{"not":{}}]}}}`, `{"a":[]}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		err := Validate(json.RawMessage(schema), json.RawMessage(args))
		if fault, ok := errors.AsType[*Fault](err); ok {
			if fault.Message == "" {
				t.Error("a fault without words")
			}
			if _, err := json.Marshal(fault.Body()); err != nil {
				t.Errorf("the fault does not marshal: %v", err)
			}
		}
	})
}

func TestProblemsAreStable(t *testing.T) {
	t.Parallel()
	schema := mustSchema[sample](t)
	args := json.RawMessage(`{"b":1,"a":1,"mode":"x","limit":"x","kinds":[1,2]}`)
	first := Validate(schema, args).Error()
	if !slices.IsSorted(strings.Split(first, "; ")) {
		t.Errorf("not sorted: %s", first)
	}
	for range 20 {
		if again := Validate(schema, args).Error(); again != first {
			t.Fatalf("%s\n%s", first, again)
		}
	}
}
