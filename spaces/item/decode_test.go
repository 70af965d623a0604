package item_test

import (
	"encoding/json"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func TestReadAndDecodeJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ read, decoded string }{
		`{"n": 12345678901234567890}`: {`{"n":12345678901234567890}`, `{"n":12345678901234567890}`},
		`1e9999999`:                   {`1e9999999`, ""},
		`1e-9999999`:                  {`1e-9999999`, ""},
		`[0.10]`:                      {`[0.10]`, `[0.10]`},
		`1 2`:                         {},
		`{`:                           {},
		` `:                           {},
	} {
		if v, err := item.ReadJSON([]byte(text)); written(t, v, err) != want.read {
			t.Errorf("%q is read as %v, %v; want %s", text, v, err, want.read)
		}
		if v, err := item.DecodeJSON([]byte(text)); written(t, v, err) != want.decoded {
			t.Errorf("%q is decoded as %v, %v; want %s", text, v, err, want.decoded)
		}
	}
}

// written is a value as JSON; nothing where there is an error.
func written(t *testing.T, v any, failed error) string {
	t.Helper()
	if failed != nil {
		if v != nil {
			t.Errorf("%v beside %v", v, failed)
		}
		return ""
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
