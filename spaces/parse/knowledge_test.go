package parse_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

func TestKnowledge(t *testing.T) {
	t.Parallel()
	const sig = "<!-- rye:signed:x -->\n"
	tests := []struct {
		name, path, src string
		want            item.KnowledgeDoc
	}{
		{"empty", "a/b.md", "", item.KnowledgeDoc{Name: "b"}},
		{"only a signature", "b.md", sig, item.KnowledgeDoc{Name: "b"}},
		{"no metadata", `C:\x\note.md`, sig + "text\n\n# Heading\n", item.KnowledgeDoc{Name: "note", Title: "Heading", Body: "text\n\n# Heading"}},
		{"empty metadata", "b.md", sig + "---\n---\ntext", item.KnowledgeDoc{Name: "b", Body: "text", Metadata: map[string]any{}}},
		{"only a comment in the metadata", "b.md", "```yml\n# nothing\n```\ntext", item.KnowledgeDoc{Name: "b", Body: "text", Metadata: map[string]any{}}},
		{
			"all keys", "b.md", sig + "\n```yaml\nid: i\ntitle: T\ncategory: c\nversion: 1.10\nauthor: a\ndescription: >\n  d\n  e\n" +
				"entry_type: et\ncreated_at: 2026-01-02\ntags: [x, 3]\nreferences: r/s\nextends: e1, e2\nused_by:\n- u\n- {k: v}\n```\n  code\n",
			item.KnowledgeDoc{
				Name: "i", Title: "T", Category: "c", Version: "1.10", Author: "a", Description: "d e", EntryType: "et",
				CreatedAt: "2026-01-02", Tags: []string{"x", "3"}, References: []string{"r/s"}, Extends: []string{"e1", "e2"},
				UsedBy: []string{"u"}, Body: "code",
				Metadata: map[string]any{
					"id": "i", "title": "T", "category": "c", "version": 1.1, "author": "a", "description": "d e\n", "entry_type": "et",
					"created_at": "2026-01-02", "tags": []any{"x", int64(3)}, "references": "r/s", "extends": "e1, e2",
					"used_by": []any{"u", map[string]any{"k": "v"}},
				},
			},
		},
		{"name wins over id", "b.md", "---\nid: i\nname: n\n...\n", item.KnowledgeDoc{Name: "n", Metadata: map[string]any{"id": "i", "name": "n"}}},
		{"yaml code further down is body", "b.md", "text\n```yaml\na: 1\n```", item.KnowledgeDoc{Name: "b", Body: "text\n```yaml\na: 1\n```"}},
		{"indented code at the top", "b.md", "\n\n    ---\n    x\n", item.KnowledgeDoc{Name: "b", Body: "---\n    x"}},
		{"yaml with body", "b.yml", "# rye:signed:x\nname: n\nbody: |\n  text\n",
			item.KnowledgeDoc{Name: "n", Body: "text", Metadata: map[string]any{"name": "n"}}},
		{"yaml without body", "b.yaml", "# rye:signed:x\nname: n\n",
			item.KnowledgeDoc{Name: "n", Body: "name: n", Metadata: map[string]any{"name": "n"}}},
		{"yaml list", "b.yaml", "- a\n- b\n", item.KnowledgeDoc{Name: "b", Body: "- a\n- b"}},
		{"yaml starting with a marker", "b.yaml", "---\ncontent: c\n", item.KnowledgeDoc{Name: "b", Body: "c", Metadata: map[string]any{}}},
		{"null values", "b.md", "---\ntitle:\ntags: ~\n---\n", item.KnowledgeDoc{Name: "b", Metadata: map[string]any{"title": nil, "tags": nil}}},
		{
			"anchors and merge keys", "b.md", "---\nbase: &b {category: c, author: x}\n<<: *b\nauthor: y\ntags: &t [p]\nother: *t\n---\n",
			item.KnowledgeDoc{
				Name: "b", Category: "c", Author: "y", Tags: []string{"p"},
				Metadata: map[string]any{
					"base": map[string]any{"category": "c", "author": "x"}, "category": "c", "author": "y", "tags": []any{"p"}, "other": []any{"p"},
				},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, src := range []string{tt.src, "\ufeff" + strings.ReplaceAll(tt.src, "\n", "\r\n")} {
				got, err := parse.Knowledge(tt.path, []byte(src))
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(*got, tt.want) {
					t.Errorf("got\n%#v\nwant\n%#v", *got, tt.want)
				}
				if _, err := json.Marshal(got); err != nil {
					t.Errorf("the metadata cannot be shown as JSON: %v", err)
				}
			}
		})
	}
}

func TestKnowledgeErrors(t *testing.T) {
	t.Parallel()
	const sig = "<!-- rye:signed:x -->\n<!-- rye:unsigned -->\n\n" // 3 lines
	tests := []struct {
		name, path, src string
		line            int
		words           []string
	}{
		{"fence never closed", "k.md", sig + "```yaml\nname: x\n", 4, []string{"never closed"}},
		{"front matter never closed", "k.md", "---\nname: x\n", 1, []string{"never closed"}},
		{"no mapping", "k.md", sig + "---\n- a\n---\n", 5, []string{"mapping"}},
		{"scanner error", "k.md", sig + "---\nname: x\n bad: y\n---\n", 6, []string{"mapping values are not allowed"}},
		{"tab", "k.md", sig + "---\na:\n\t- b\n---\n", 6, []string{"cannot start any token"}},
		{"grammar error", "k.md", sig + "```yaml\na: 1\nb: [1, 2\n```\n", 6, []string{"did not find expected ',' or ']'"}},
		{"grammar error on line 1", "k.yaml", "}", 1, []string{"did not find expected node content"}},
		{"unknown anchor", "k.md", sig + "---\na: *b\n---\n", 5, []string{"unknown anchor"}},
		{"duplicate key", "k.md", sig + "---\na: 1\n\na: 2\n---\n", 7, []string{`"a" already stands on line 5`}},
		{"duplicate key within", "k.md", "---\nx:\n  a: 1\n  a: 2\n---\n", 4, []string{`"a"`}},
		{"key is no text", "k.md", "---\n? [a]\n: 1\n---\n", 2, []string{"key"}},
		{"title is no text", "k.md", "---\nname: x\ntitle:\n  a: b\n---\n", 4, []string{"title must be text"}},
		{"two documents", "k.yaml", "a: 1\n---\nb: 2\n", 2, []string{"second YAML document"}},
		{"merge of a text", "k.md", "---\na: 1\n<<: b\n---\n", 3, []string{"merge"}},
		{"contains itself", "k.md", "---\na: &a [*a]\n---\n", 2, []string{"nested"}},
		{"merges itself", "k.md", "---\na: &a\n  <<: *a\n---\n", 3, []string{"nested"}},
		{"nested too deep", "k.md", "---\na: " + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "\n---\n", 2, []string{"more than 64 deep"}},
		{"many aliases", "k.md", "---\n" + laughs() + "---\n", 0, []string{"more than 100000"}},
		{"invalid UTF-8", "k.md", "a\n\n\xff", 3, []string{"UTF-8"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse.Knowledge(tt.path, []byte(tt.src))
			if tt.line == 0 { // anywhere
				if err == nil || !strings.Contains(err.Error(), tt.words[0]) {
					t.Errorf("got %v, want %q", err, tt.words[0])
				}
				return
			}
			wantError(t, err, tt.line, tt.words...)
		})
	}
}

// laughs is a document whose aliases stand for 10^9 values.
func laughs() string {
	var out strings.Builder
	element := "x"
	for i := range 9 {
		fmt.Fprintf(&out, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(element+", ", 10), ", "))
		element = fmt.Sprintf("*a%d", i)
	}
	return out.String()
}
