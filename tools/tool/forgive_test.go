package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

type forgiving struct {
	ID     string             `json:"id" alias:"name,thread:kind"`
	Kind   string             `json:"kind,omitempty" enum:"thread,item"`
	Count  int                `json:"count,omitempty"`
	Spend  float64            `json:"spend,omitempty"`
	Async  bool               `json:"async,omitempty"`
	List   []string           `json:"list,omitempty"`
	Many   []inner            `json:"many,omitempty"`
	Params Object             `json:"params,omitempty"`
	Limits map[string]float64 `json:"limits,omitempty"`
}

type inner struct {
	N int `json:"n,omitempty"`
}

func TestForgivingInput(t *testing.T) {
	t.Parallel()
	echo := New(Definition{ID: "echo"}, func(_ context.Context, _ Env, in forgiving) (any, error) { return in, nil })
	for _, c := range []struct{ given, want string }{
		{`{"id":"a","count":"3","spend":"0.5","async":"true"}`, `{"id":"a","count":3,"spend":0.5,"async":true}`},
		{`{"id":"a","count":" 3 ","async":"false"}`, `{"id":"a","count":3}`},
		{`{"id":7}`, `{"id":"7"}`},
		{`{"id":"a","count":3.0}`, `{"id":"a","count":3}`},
		{`{"id":"a","list":"x"}`, `{"id":"a","list":["x"]}`},
		{`{"id":"a","list":"[\"x\",\"y\"]"}`, `{"id":"a","list":["x","y"]}`},
		{`{"id":"a","list":[1,"y"]}`, `{"id":"a","list":["1","y"]}`},
		{`{"id":"a","list":{"y":"2","x":"1"}}`, `{"id":"a","list":["x:1","y:2"]}`},
		{`{"id":"a","count":{"max_distance":2}}`, `{"id":"a","count":2}`},
		{`{"id":"a","count":{"enabled":true,"max_distance":2}}`, `{"id":"a","count":2}`},
		{`{"id":["a"],"count":[3],"async":[true]}`, `{"id":"a","count":3,"async":true}`},
		{`{"id":"a","kind":"Thread"}`, `{"id":"a","kind":"thread"}`},
		{`{"id":"a","many":{"n":"4"}}`, `{"id":"a","many":[{"n":4}]}`},
		{`{"id":"a","params":"{\"x\": [1, \"<b>\"]}"}`, `{"id":"a","params":{"x":[1,"<b>"]}}`},
		{`{"id":"a","limits":{"turns":"8"}}`, `{"id":"a","limits":{"turns":8}}`},
		{`{"id":"a","limits":"{\"turns\":\"8\"}"}`, `{"id":"a","limits":{"turns":8}}`},
		{`{"id":"a","count":null,"params":null}`, `{"id":"a"}`},
		{`{"name":"a"}`, `{"id":"a"}`},
		{`{"name":"a","id":"a"}`, `{"id":"a"}`},
		{`{"thread":"a"}`, `{"id":"a","kind":"thread"}`},
		{`{"thread":"a","kind":"thread"}`, `{"id":"a","kind":"thread"}`},
	} {
		got, err := echo.Call(t.Context(), Env{}, json.RawMessage(c.given))
		if err != nil {
			t.Errorf("%s: %v", c.given, err)
			continue
		}
		if raw, err := plainJSON(got); err != nil || strings.Replace(string(raw), `,"params":{}`, "", 1) != c.want {
			t.Errorf("%s is taken as %s, want %s", c.given, raw, c.want)
		}
	}
	for given, want := range map[string]string{
		`{"id":"a","name":"b"}`:             `"id" and "name" mean the same and are both given`,
		`{"thread":"a","kind":"item"}`:      `"thread" says that "kind" is "thread", which is given as "item"`,
		`{"id":"a","count":"three"}`:        `"count" must be integer, got string`,
		`{"id":"a","count":"3.5"}`:          `"count" must be integer, got string`,
		`{"id":"a","count":true}`:           `"count" must be integer, got boolean`,
		`{"id":"a","async":"yes"}`:          `"async" must be boolean, got string`,
		`{"id":"a","async":1}`:              `"async" must be boolean, got integer`,
		`{"id":"a","params":"x"}`:           `"params" must be object, got string`,
		`{"id":"a","params":"[1]"}`:         `"params" must be object, got string`,
		`{"id":"a","spend":"1e999999"}`:     `"spend" must be number, got string`,
		`{"id":["a","b"]}`:                  `"id" must be string, got array`,
		`{"id":[["a"]]}`:                    `"id" must be string, got array`,
		`{"id":"a","kind":"items"}`:         `"kind" must be one of "thread", "item", got "items"`,
		`{"name":["a","b"]}`:                `"name" (id) must be string, got array`,
		`{"id":"a","lst":["x"]}`:            `unknown property "lst", did you mean "list"`,
		`{"id":"a","list":["x"],"titel":1}`: `unknown property "titel", valid are "async"`,
		`{}`:                                `missing property "id"`,
	} {
		_, err := echo.Call(t.Context(), Env{}, json.RawMessage(given))
		fault, ok := errors.AsType[*Fault](err)
		if !ok || fault.Code != CodeBadArguments || !strings.Contains(fault.Message, want) {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}

// Arguments that fit a schema are taken as they stand.
func TestForgivingLeavesWhatFits(t *testing.T) {
	t.Parallel()
	schema := mustSchema[forgiving](t)
	rapid.Check(t, func(t *rapid.T) {
		in := forgiving{
			ID: rapid.String().Draw(t, "id"), Count: rapid.Int().Draw(t, "count"), Async: rapid.Bool().Draw(t, "async"),
			List: rapid.SliceOf(rapid.String()).Draw(t, "list"), Params: Object(`{"n":"3","l":["[1]"],"o":null}`),
		}
		args, err := plainJSON(in)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Accept(schema, args); err != nil || string(got) != string(args) {
			t.Fatalf("%s became %s, %v", args, got, err)
		}
	})
}
