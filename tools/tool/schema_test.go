package tool

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

type sampleChange struct {
	LineID string `json:"line_id" jsonschema:"id of a line"`
	Count  int    `json:"count,omitempty" minimum:"1" maximum:"9.5"`
}

type sampleBase struct {
	Note string `json:"note,omitempty"`
}

type sample struct {
	sampleBase
	Path    string          `json:"path" jsonschema:"where"`
	Mode    string          `json:"mode,omitempty" enum:"all,any" default:"all"`
	Kinds   []string        `json:"kinds,omitempty" enum:"a,b"`
	Make    bool            `json:"make,omitempty" default:"true"`
	Changes []*sampleChange `json:"changes,omitempty"`
	Limit   *int            `json:"limit,omitempty" default:"7"`
	Spend   thread.Micros   `json:"spend,omitempty"`
	Since   time.Time       `json:"since,omitzero"`
	Params  Object          `json:"params,omitempty"`
	Any     json.RawMessage `json:"any,omitempty" jsonschema:"anything"`
	Named   map[string]uint `json:"named,omitempty" jsonschema:"<by> name"`
	Hidden  string          `json:"-"`
}

type sampleCycle struct {
	Next []*sampleCycle `json:"next,omitempty"`
}

const sampleSchema = `{"type":"object","properties":{
"note":{"type":"string"},
"path":{"type":"string","description":"where"},
"mode":{"type":"string","default":"all","enum":["all","any"]},
"kinds":{"type":"array","items":{"type":"string","enum":["a","b"]}},
"make":{"type":"boolean","default":true},
"changes":{"type":"array","items":{"type":"object","properties":{
"line_id":{"type":"string","description":"id of a line"},
"count":{"type":"integer","minimum":1,"maximum":9.5}},"required":["line_id"],"additionalProperties":false}},
"limit":{"type":"integer","default":7},
"spend":{"type":"number"},
"since":{"type":"string","format":"date-time"},
"params":{"type":"object"},
"any":{"description":"anything"},
"named":{"type":"object","description":"\u003cby\u003e name","additionalProperties":{"type":"integer"}}},"required":["path"],"additionalProperties":false}`

func TestSchemaFor(t *testing.T) {
	t.Parallel()
	got, err := SchemaFor[sample]()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(sampleSchema, "\n", ""); string(got) != want {
		t.Errorf("schema:\n got %s\nwant %s", got, want)
	}
	if _, err := compile(got); err != nil {
		t.Errorf("does not compile: %v", err)
	}
}

func TestSchemaForRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]func() (json.RawMessage, error){
		"channel":               SchemaFor[struct{ C chan int }],
		"within itself":         SchemaFor[sampleCycle],
		"keys that are numbers": SchemaFor[struct{ M map[int]string }],
		"description without text": SchemaFor[struct {
			N int `json:"n" jsonschema:""`
		}],
		"default not JSON": SchemaFor[struct {
			N int `json:"n" default:"x"`
		}],
		"enum of numbers": SchemaFor[struct {
			N int `json:"n" enum:"1,2"`
		}],
		"minimum not a number": SchemaFor[struct {
			N int `json:"n" minimum:"low"`
		}],
		"maximum not a number": SchemaFor[struct {
			N int `json:"n" maximum:"high"`
		}],
	}
	for name, make := range cases {
		if schema, err := make(); err == nil {
			t.Errorf("%s: got %s, want an error", name, schema)
		}
	}
}
