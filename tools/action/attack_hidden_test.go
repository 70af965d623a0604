package action

import (
	"io"
	"strings"
	"testing"
)

// written is a secret that a thread has written into an item.
const written = "zq-written-secret-value"

// masker hides it.
type masker struct{}

func (masker) Mask(text string) string             { return strings.ReplaceAll(text, written, secretPlaceholder) }
func (m masker) MaskLines(text string) string      { return m.Mask(text) }
func (masker) Writer(io.Writer) (w io.WriteCloser) { return nil }

// TestAttackSecretInItem: a thread writes a secret into an item, and reads it back by pages, by executing it, and by searching for its parts. The text is masked before it is cut, and search does not find it.
func TestAttackSecretInItem(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.put(h.project, "knowledge/test/notes.md", strings.Repeat("p ", 300)+written+" pp\n")
	h.put(h.project, "knowledge/test/other.md", "pp alone\n")
	c := h.client()
	c.Env.Mask = masker{}
	for bytes := range 40 {
		got, err := h.Fetch(t.Context(), c, FetchRequest{ItemType: "knowledge", ItemID: "test/notes", MaxBytes: 590 + bytes})
		if err != nil {
			t.Fatal(err)
		}
		if page := got.(*FetchResult).Content; strings.Contains(page, "zq-writ") {
			t.Fatalf("%d bytes end in %q", bytes, page[len(page)-30:])
		}
	}
	got, err := h.Execute(t.Context(), c, ExecuteRequest{ItemType: "knowledge", ItemID: "test/notes"})
	if text := string(object(t, got)); err != nil || strings.Contains(text, "zq-writ") || !strings.Contains(text, secretPlaceholder) {
		t.Errorf("executed: %s, %v", text, err)
	}
	for _, query := range []string{"zq*", "written", "secret value", "pp", "*"} {
		r, err := h.Search(t.Context(), c, SearchRequest{Query: query, Scope: "knowledge.test.*"})
		if err != nil {
			t.Fatal(err)
		}
		for _, hit := range r.Results {
			if hit.ID == "test/notes" || hit.Score > 1 {
				t.Errorf("%s finds %+v", query, hit)
			}
		}
		if r.Total != len(r.Results) || query == "pp" && (r.Total != 1 || r.Results[0].Score != 1) {
			t.Errorf("%s: %+v", query, r)
		}
	}
	c.Env.Mask = nil
	if got, err := h.Search(t.Context(), c, SearchRequest{Query: "written", Scope: "knowledge.test.*"}); err != nil || got.Total != 1 {
		t.Errorf("others find %+v, %v", got, err)
	}
}

// TestAttackSignatureByFetch: a line that was put before it moves the signature of an item away from its place, and rye_fetch, rye_search or executing shows it. A line with a signature is left out wherever it stands.
func TestAttackSignatureByFetch(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const line = "<!-- rye:signed:2026-01-02T03:04:05Z:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef:c2VjcmV0LXNpZ25hdHVyZQ:0123456789abcdef -->"
	h.put(h.project, "knowledge/test/moved.md", "First words\n"+line+"\nLast words\n")
	got, err := h.Fetch(t.Context(), h.client(), FetchRequest{ItemType: "knowledge", ItemID: "test/moved"})
	if err != nil || got.(*FetchResult).Content != "First words\nLast words\n" {
		t.Errorf("fetch: %+v, %v", got, err)
	}
	for _, query := range []string{"first", "c2VjcmV0LXNpZ25hdHVyZQ", "0123456789abcdef"} {
		got, err := h.Search(t.Context(), h.client(), SearchRequest{Query: query, Scope: "knowledge.test.moved"})
		if text := string(object(t, got)); err != nil || strings.Contains(text, "rye:signed") || query != "first" && got.Total > 0 {
			t.Errorf("%s: %s, %v", query, text, err)
		}
	}
}
