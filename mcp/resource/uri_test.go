package resource_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/mcp/resource"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		uri  string
		want resource.Address
	}{
		{"rye://threads", resource.Address{Part: resource.Board}},
		{"RYE://threads?max_bytes=500&project_path=%2Fp", resource.Address{Part: resource.Board, Bytes: 500, Project: "/p"}},
		{"rye://threads/a/b-1/result", resource.Address{Part: resource.Result, Thread: "a/b-1"}},
		{"rye://threads/a%2Fb-1/result?part=outputs", resource.Address{Part: resource.Result, Thread: "a/b-1", Outputs: true}},
		{"rye://threads/transcript-1/transcript?cursor=a%26b", resource.Address{Part: resource.Transcript, Thread: "transcript-1", Cursor: "a&b"}},
		{"rye://threads/x%2Fcost/cost", resource.Address{Part: resource.Cost, Thread: "x/cost"}},
		{"rye://threads/a%2525-1/chain", resource.Address{Part: resource.Chain, Thread: "a%25-1"}},
		{"rye://items/tool/rye/file-system/read", resource.Address{Part: resource.Item, Kind: item.Tool, ItemID: "rye/file-system/read"}},
		{"rye://items/knowledge/my notes/first%20draft?offset=7", resource.Address{Part: resource.Item, Kind: item.Knowledge, ItemID: "my notes/first draft", Offset: 7}},
	}
	for _, tt := range tests {
		got, err := resource.Parse(tt.uri)
		if err != nil || got != tt.want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", tt.uri, got, err, tt.want)
		}
	}
}

// hostile are URIs that name nothing, and a word of what is said of each.
func hostile() map[string]string {
	return map[string]string{
		"":                                      "there is no resource",
		"rye:":                                  "there is no resource",
		"rye://":                                "neither threads nor items",
		"rye://other/x":                         "neither threads nor items",
		"rye://threads/":                        "behind the id",
		"rye://threads/x":                       "behind the id",
		"rye://threads//result":                 "is empty",
		"rye://threads/x%2Fresult":              "behind the id",
		"rye://threads/../../etc/passwd/result": `".."`,
		"rye://threads/%2e%2e/result":           `".."`,
		"rye://threads/a%2f..%2f..%2fb/cost":    `".."`,
		"rye://threads/%2Fetc%2Fpasswd/result":  "empty segment",
		"rye://threads/a%00b/result":            "control character",
		"rye://threads/a\nb/result":             "control character",
		"rye://threads/a%5Cb/result":            "backslash",
		"rye://threads/a%ffb/result":            "UTF-8",
		"rye://threads/100%/result":             "%25",
		"rye://threads/x-1/result#part":         "fragment",
		"rye://threads/x-1/result?tail=3":       "no parameter",
		"rye://threads/x-1/cost?cursor=3":       "no parameter",
		"rye://threads/x-1/result?part=all":     "result or outputs",
		"rye://threads/x-1/result?max_bytes=-1": "whole number",
		"rye://threads?max_bytes=1&max_bytes=2": "2 times",
		"rye://threads?%zz":                     "cannot be read",
		"rye://items":                           "item type",
		"rye://items/secret/x":                  "item type",
		"rye://items/tool":                      "is empty",
		"rye://items/tool/":                     "is empty",
		"rye://items/tool/../../../etc/passwd":  `".."`,
		"rye://items/tool/%2e%2e%2fkeys":        `".."`,
		"rye://items/tool//etc/passwd":          "absolute",
		"rye://items/tool/x?offset=-1":          "whole number",
		"rye://user:pw@host/threads":            "neither threads nor items",
		"file:///etc/passwd":                    "there is no resource",
		"http://localhost/":                     "there is no resource",
		"javascript:alert(1)":                   "there is no resource",
		"rye://threads/" + strings.Repeat("a/", 1<<19) + "x-1/result": "longer than",
		"rye://items/tool/" + strings.Repeat("a", 1<<20):              "longer than",
		"rye://threads/" + strings.Repeat("%25", 1<<18) + "/result":   "longer than",
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for uri, want := range hostile() {
		a, err := resource.Parse(uri)
		fault, ok := errors.AsType[*tool.Fault](err)
		switch {
		case !ok:
			t.Errorf("Parse(%.60q) = %+v, %v, want a fault", uri, a, err)
		case !strings.Contains(fault.Message, want):
			t.Errorf("Parse(%.60q) says %.200q, want %q", uri, fault.Message, want)
		case fault.Hint == "" || len(fault.Message) > 500:
			t.Errorf("Parse(%.60q) says %d bytes, with the hint %q", uri, len(fault.Message), fault.Hint)
		}
	}
}

// An address is read back as it was written, whatever the ids hold.
func TestParseReadsWhatIsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-c%?#&=+ ;/:@ü-]{1,12}`))
		a := resource.Address{
			Part:  rapid.SampledFrom([]resource.Part{resource.Board, resource.Transcript, resource.Result, resource.Cost, resource.Chain, resource.Item}).Draw(t, "part"),
			Bytes: rapid.SampledFrom([]int{0, 500, 1_000_000}).Draw(t, "bytes"), Project: text.Draw(t, "project"),
		}
		switch a.Part {
		case resource.Board:
		case resource.Item:
			a.Kind = rapid.SampledFrom(item.Kinds()).Draw(t, "kind")
			a.ItemID, a.Offset = text.Draw(t, "id"), rapid.IntRange(0, 9).Draw(t, "offset")
			if item.CheckID(a.ItemID) != nil {
				t.Skip("no id")
			}
		default:
			id, err := thread.ParseID(text.Draw(t, "id"))
			if err != nil {
				t.Skip("no id")
			}
			a.Thread = id
			if a.Part == resource.Transcript || a.Part == resource.Result {
				a.Cursor = text.Draw(t, "cursor")
				a.Outputs = a.Part == resource.Result && rapid.Bool().Draw(t, "outputs")
			}
		}
		got, err := resource.Parse(a.String())
		if err != nil || got != a {
			t.Fatalf("%+v is written %s and read as %+v, %v", a, a, got, err)
		}
	})
}

// FuzzParse: each address that is read has ids that lead nowhere else, and is written as
// something that is read the same.
func FuzzParse(f *testing.F) {
	for uri := range hostile() {
		f.Add(uri[:min(len(uri), 200)])
	}
	f.Add("rye://items/tool/rye/bash?offset=3")
	f.Add("rye://threads/a%2Fb-1/result?part=outputs&cursor=7")
	f.Fuzz(func(t *testing.T, uri string) {
		a, err := resource.Parse(uri)
		if err != nil {
			return
		}
		if a.Thread != "" {
			if _, err := thread.ParseID(string(a.Thread)); err != nil {
				t.Fatalf("%q names the thread %q: %v", uri, a.Thread, err)
			}
		}
		if a.Part == resource.Item && item.CheckID(a.ItemID) != nil {
			t.Fatalf("%q names the item %q", uri, a.ItemID)
		}
		if again, err := resource.Parse(a.String()); err != nil || again != a {
			t.Fatalf("%q is %+v, written %s and read as %+v, %v", uri, a, a, again, err)
		}
	})
}
