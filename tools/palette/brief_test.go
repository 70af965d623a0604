package palette

import (
	"encoding/json"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// TestArraysSayTheirElements: a provider refuses the whole request for one array, however
// deep, that does not say of which elements it is, or says it one by one.
func TestArraysSayTheirElements(t *testing.T) {
	t.Parallel()
	const unsaid = `{"items":{"description":"one element"},"type":"array"}`
	for name, c := range map[string]struct{ property, want string }{
		"nothing":       {`{"type":"array"}`, unsaid},
		"all":           {`{"type":"array","items":true}`, unsaid},
		"empty":         {`{"type":"array","items":{}}`, unsaid},
		"none in order": {`{"type":"array","items":[]}`, unsaid},
		"said":          {`{"type":"array","items":{"type":"string"}}`, `{"items":{"type":"string"},"type":"array"}`},
		"or null":       {`{"type":["array","null"]}`, `{"items":{"description":"one element"},"type":["array","null"]}`},
		"in order": {`{"type":"array","items":[{"type":"string"},{"type":"array"}]}`,
			`{"items":{"anyOf":[{"type":"string"},` + unsaid + `]},"type":"array"}`},
		"of arrays":       {`{"type":"array","items":{"type":"array"}}`, `{"items":` + unsaid + `,"type":"array"}`},
		"in an object":    {`{"type":"object","properties":{"type":{"type":"array"}}}`, `{"properties":{"type":` + unsaid + `},"type":"object"}`},
		"as an addition":  {`{"type":"object","additionalProperties":{"type":"array"}}`, `{"additionalProperties":` + unsaid + `,"type":"object"}`},
		"an alternative":  {`{"anyOf":[{"type":"string"},{"type":"array"}]}`, `{"anyOf":[{"type":"string"},` + unsaid + `]}`},
		"under condition": {`{"if":{"type":"array"},"not":{"type":"array"}}`, `{"if":` + unsaid + `,"not":` + unsaid + `}`},
		"no schema":       {`{"type":"object","default":{"type":"array"}}`, `{"default":{"type":"array"},"type":"object"}`},
	} {
		var schema map[string]any
		text := `{"type":"object","properties":{"p":` + c.property + `},"$defs":{"d":` + c.property + `}}`
		if err := json.Unmarshal([]byte(text), &schema); err != nil {
			t.Fatal(err)
		}
		d, err := definition("a", &item.ToolDoc{Description: "Does it.", Schema: schema})
		want := `{"$defs":{"d":` + c.want + `},"properties":{"p":` + c.want + `},"type":"object"}`
		if err != nil || string(d.Schema) != want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", name, err, d.Schema, want)
		}
	}
}
