package action

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// However a text is paged, its pages make up the text, and each takes no more
// room than asked for.
func TestPages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab \n\t\"\\\u2028\x01é€😀"))).Draw(t, "text")
		room := rapid.IntRange(6, 40).Draw(t, "room") // one character takes six at most
		var all strings.Builder
		for offset, pages := 0, 0; ; pages++ {
			page, next, err := pageOf(text, offset, room)
			if err != nil || !utf8.ValidString(page) || pages > len(text) {
				t.Fatalf("page %d at %d: %q, %v", pages, offset, page, err)
			}
			raw, err := json.Marshal(page)
			if err != nil || len(raw)-2 > room {
				t.Fatalf("%s has %d bytes, room for %d: %v", raw, len(raw)-2, room, err)
			}
			all.WriteString(page)
			if next == 0 {
				break
			}
			offset = next
		}
		if all.String() != text {
			t.Fatalf("the pages make %q, want %q", all.String(), text)
		}
	})
}

func TestPagesEndWithLines(t *testing.T) {
	t.Parallel()
	page, next, err := pageOf("first line\nsecond line\n", 0, 18)
	if err != nil || page != "first line\n" || next != len(page) {
		t.Errorf("got %q, %d, %v", page, next, err)
	}
	if page, _, err := pageOf("é", 1, 10); err != nil || page != "" {
		t.Errorf("within a character: %q, %v", page, err)
	}
}

func TestFetchPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	text := strings.TrimPrefix(factsKnowledge, "<!-- rye:unsigned -->\n\n") + strings.Repeat("Water is \"wet\".\n", 5000)
	h.put(h.project, "knowledge/test/long.md", text)
	var all strings.Builder
	for offset := 0; ; {
		got, err := h.Fetch(t.Context(), h.client(), FetchRequest{ItemID: "test/long", Offset: offset})
		if err != nil {
			t.Fatal(err)
		}
		r := got.(*FetchResult)
		if size := len(object(t, r)); size > 25_000 || r.TotalBytes != len(text) {
			t.Fatalf("the page at %d has %d bytes as JSON; total_bytes %d, want %d", offset, size, r.TotalBytes, len(text))
		}
		all.WriteString(r.Content)
		if offset = r.NextOffset; offset == 0 {
			break
		}
	}
	if all.String() != text {
		t.Errorf("the pages make %d bytes, want %d", all.Len(), len(text))
	}
	got, err := h.Fetch(t.Context(), h.client(), FetchRequest{ItemID: "test/long", Offset: len(text) + 1})
	wantFault(t, got, err, tool.CodeBadArguments, "behind the end")

	executed, err := h.Execute(t.Context(), h.client(), ExecuteRequest{ItemID: "test/long"})
	if err != nil {
		t.Fatal(err)
	}
	if k := executed.(*KnowledgeResult); len(object(t, k)) > 35_000 || !strings.Contains(k.Instructions, "rye_fetch") {
		t.Errorf("long knowledge: %d bytes, %s", len(object(t, k)), k.Instructions)
	}
	h.put(h.project, "directives/test/long.md", helloDirective+strings.Repeat("Say it again.\n", 5000))
	got, err = h.Execute(t.Context(), h.client(), ExecuteRequest{
		ItemType: "directive", ItemID: "test/long", Parameters: object(t, map[string]any{"who": "Ada"}),
	})
	wantFault(t, got, err, tool.CodeUnsupported, "more than one answer can carry")
}

func TestHitsFit(t *testing.T) {
	t.Parallel()
	var hits []search.Hit
	for i := range 100 {
		hits = append(hits, search.Hit{ID: fmt.Sprint(i), Preview: strings.Repeat("word ", 100)})
	}
	kept, err := fitHits(hits, maxHits)
	if err != nil || len(kept) == 0 || len(kept) == len(hits) || kept[0].ID != "0" {
		t.Errorf("kept %d of %d: %v", len(kept), len(hits), err)
	}
	if raw, err := json.Marshal(kept); err != nil || len(raw) > maxHits+2 {
		t.Errorf("%d bytes, room for %d: %v", len(raw), maxHits, err)
	}
	if kept, err := fitHits([]search.Hit{{Preview: strings.Repeat("x", maxHits)}}, maxHits); err != nil || len(kept) != 1 {
		t.Errorf("a single hit is left out: %v", err)
	}
}

func TestSearchGoesOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	seen := map[string]bool{}
	for offset := 0; ; {
		r, err := h.Search(t.Context(), h.client(), SearchRequest{Query: "*", Limit: 4, Offset: offset})
		if err != nil {
			t.Fatal(err)
		}
		for _, hit := range r.Results {
			seen[string(hit.Type)+hit.ID] = true
		}
		if offset = r.NextOffset; offset == 0 {
			if len(seen) != r.Total {
				t.Errorf("the pages have %d hits of %d", len(seen), r.Total)
			}
			return
		}
	}
}
