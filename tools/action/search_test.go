package action

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// searched calls the tool as a model does.
func (h *house) searched(args string) *SearchResult {
	h.t.Helper()
	rye, _ := h.Tool(h.client(), "rye_search")
	got, err := rye.Call(h.t.Context(), h.client().Env, json.RawMessage(args))
	if err != nil {
		h.t.Fatalf("%s: %v", args, err)
	}
	return got.(*SearchResult)
}

func searchedIDs(r *SearchResult) []string {
	var ids []string
	for _, hit := range r.Results {
		ids = append(ids, hit.ID)
	}
	return ids
}

// The options of a search as models give them, in all forms.
func TestSearchOptions(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	note := func(title, tags, version, body string) string {
		return "---\ntitle: " + title + "\nversion: " + version + "\ncategory: team\ntags: [" + tags + "]\n---\n\n" + body + "\n"
	}
	h.put(h.project, "knowledge/w/apples.md", note("Apples", "fruit, red", "1.10", "walrus and carpenter, far from any oyster, talk of cabbages"))
	h.put(h.project, "knowledge/w/pears.md", note("Pears", "fruit", "1.9", "walrus carpenter"))
	h.put(h.user, "knowledge/w/kings.md", note("Kings walrus", "people", "2.0", "cabbages"))
	for args, want := range map[string][]string{
		`{"query":"walrus"}`:                                                     {"w/apples", "w/kings", "w/pears"},
		`{"query":"walrus","fields":["title"]}`:                                  {"w/kings"},
		`{"query":"walrus","fields":"title"}`:                                    {"w/kings"},
		`{"query":"walrus","fields":{"title":"kings"}}`:                          {"w/kings"},
		`{"fields":{"title":"kings OR pears","body":"walrus"}}`:                  {"w/pears"},
		`{"query":"*","fields":["title:apples"]}`:                                {"w/apples"},
		`{"query":"walrus","source":"user"}`:                                     {"w/kings"},
		`{"query":"walrus","space":"project"}`:                                   {"w/apples", "w/pears"},
		`{"query":"walrus","source":"all"}`:                                      {"w/apples", "w/kings", "w/pears"},
		`{"query":"wallrus"}`:                                                    nil,
		`{"query":"wallrus","fuzzy":1}`:                                          {"w/apples", "w/kings", "w/pears"},
		`{"query":"wallrus","fuzzy":{"enabled":true,"max_distance":1}}`:          {"w/apples", "w/kings", "w/pears"},
		`{"query":"walrus cabbages"}`:                                            {"w/apples", "w/kings"},
		`{"query":"carpenter cabbages","proximity":2}`:                           nil,
		`{"query":"carpenter cabbages","proximity":{"max_distance":7}}`:          {"w/apples"},
		`{"query":"walrus","filters":{"tags":["fruit","people"]}}`:               {"w/apples", "w/kings", "w/pears"},
		`{"query":"walrus","filters":{"tags":"FRUIT","version":">=1.10"}}`:       {"w/apples"},
		`{"query":"walrus","filters":{"tags":"!fruit"}}`:                         {"w/kings"},
		`{"query":"walrus","filters":"{\"version\": 1.9}"}`:                      {"w/pears"},
		`{"filters":{"category":"team","type":"knowledge"}}`:                     {"w/apples", "w/kings", "w/pears"},
		`{"query":"walrus","sort_by":"name","scope":"rye.search.knowledge.w.*"}`: {"w/apples", "w/kings", "w/pears"},
	} {
		got := searchedIDs(h.searched(args))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s finds %v, want %v", args, got, want)
		}
	}
	if r := h.searched(`{"query":"walrus oysters"}`); r.Hint == "" || len(r.Results) > 0 {
		t.Errorf("got %+v", r)
	}
	rye, _ := h.Tool(h.client(), "rye_search")
	for args, code := range map[string]tool.Code{
		`{"query":"walrus","fuzzy":9}`:                             tool.CodeBadArguments,
		`{"query":"walrus","sort_by":"size"}`:                      tool.CodeBadArguments,
		`{"query":"walrus","fields":["colour"]}`:                   tool.CodeBadArguments,
		`{"query":"walrus","fields":["title:("]}`:                  tool.CodeBadArguments,
		`{"query":"walrus","filters":{"date_from":"soon"}}`:        tool.CodeBadArguments,
		`{"query":"walrus","filters":{"category":{"is":"x"}}}`:     tool.CodeBadArguments,
		`{"query":"walrus","filters":{"category":[]}}`:             "",
		`{"query":"walrus AND"}`:                                   tool.CodeInvalidQuery,
		`{"query":"walrus","scope":"chunk.*"}`:                     tool.CodeInvalidQuery,
		`{"query":""}`:                                             tool.CodeInvalidQuery,
		`{}`:                                                       tool.CodeInvalidQuery,
		`{"query":"walrus","filters":{"category":"` + long + `"}}`: tool.CodeBadArguments,
	} {
		_, err := rye.Call(t.Context(), h.client().Env, json.RawMessage(args))
		if f := tool.AsFault(err); code == "" && err != nil || code != "" && (f == nil || f.Code != code) {
			t.Errorf("%.60s: %v, want %s", args, err, code)
		}
	}
}

var long = strings.Repeat("x", 300)

// A hit says when the item would be refused.
func TestSearchMarksWhatIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.trust.Mode = trust.Strict
	h.makeKey()
	for _, signed := range []bool{false, true} {
		want := string(trust.Unsigned)
		if signed {
			h.sign(h.client(), "knowledge", "test/facts")
			want = ""
		}
		r, err := h.Search(t.Context(), h.client(), SearchRequest{Query: "water"})
		if err != nil || len(r.Results) != 1 || r.Results[0].Signature != want {
			t.Errorf("signed %t: %+v, %v", signed, r, err)
		}
	}
	r, err := h.Search(t.Context(), h.client(), SearchRequest{Query: "*", Source: "system", Limit: 5})
	if err != nil || slices.ContainsFunc(r.Results, func(hit search.Hit) bool { return hit.Signature != "" }) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestAttackSearchHint: a thread asks for words outside what it may search, to learn from the answer whether they occur anywhere.
// The hint about words that occur nowhere looks no further than the search itself.
func TestAttackSearchHint(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.put(h.project, "knowledge/hidden/plan.md", "---\ntitle: Plan\n---\n\nxylophone\n")
	c := h.holder("rye.search.knowledge.test.*", "rye.search.knowledge.test.**")
	answers := map[string]string{}
	for _, word := range []string{"xylophone", "xylophonf"} {
		r, err := h.Search(t.Context(), c, SearchRequest{Query: word, Scope: "knowledge.test.*"})
		if err != nil || r.Total != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		answers[word] = r.Hint[len("No item here has: "+word):]
	}
	if answers["xylophone"] != answers["xylophonf"] {
		t.Errorf("the hints differ: %v", answers)
	}
}
