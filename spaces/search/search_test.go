package search_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is three spaces and an index over them.
type world struct {
	t      testing.TB
	roots  resolve.Roots
	db     string
	writes int
}

// newWorld makes spaces of files, whose names begin with the space:
// "project/directives/a.md".
func newWorld(t testing.TB, files map[string]string) *world {
	t.Helper()
	dir := t.TempDir()
	system := fstest.MapFS{}
	w := &world{
		t:     t,
		roots: resolve.Roots{Project: filepath.Join(dir, "project"), User: filepath.Join(dir, "user"), System: system},
		db:    filepath.Join(dir, "cache", "index of ?#%41.db"),
	}
	for name, content := range files {
		if rel, ok := strings.CutPrefix(name, "system/"); ok {
			system[rel] = &fstest.MapFile{Data: []byte(content)}
			continue
		}
		w.write(name, content)
	}
	return w
}

// path is where a file of the project or user space is.
func (w *world) path(name string) string {
	space, rel, _ := strings.Cut(name, "/")
	return filepath.Join(filepath.Dir(w.roots.Project), space, ".ai", filepath.FromSlash(rel))
}

// write writes a file with a time of its own, so that no test depends on the
// clock's resolution.
func (w *world) write(name, content string) {
	w.t.Helper()
	path := w.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
	w.writes++
	at := time.Unix(1_700_000_000+int64(w.writes), 0)
	if err := os.Chtimes(path, at, at); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) open() *search.Index {
	w.t.Helper()
	return w.openAt(w.db)
}

func (w *world) openAt(path string) *search.Index {
	w.t.Helper()
	x, err := search.Open(context.Background(), path, resolve.New(w.roots))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := x.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return x
}

func directive(name, title, description, body string) string {
	return fmt.Sprintf("# %s\n\n```xml\n<directive name=%q version=\"1.0.0\"><metadata><description>%s</description>"+
		"<category>testing</category></metadata></directive>\n```\n\n%s\n", title, name, description, body)
}

func knowledge(title, tags, body string) string {
	return fmt.Sprintf("---\ntitle: %s\ntags: [%s]\ncategory: notes\n---\n\n%s\n", title, tags, body)
}

func find(t rapid.TB, x *search.Index, q search.Query) search.Page {
	t.Helper()
	page, err := x.Search(context.Background(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return page
}

// ids are the hits of a page as "source/type/id".
func ids(page search.Page) []string {
	got := make([]string, len(page.Results))
	for i, hit := range page.Results {
		got[i] = fmt.Sprintf("%s/%s/%s", hit.Source, hit.Type, hit.ID)
	}
	return got
}

func wantIDs(t testing.TB, x *search.Index, text string, want ...string) {
	t.Helper()
	got := ids(find(t, x, search.Query{Text: text}))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q finds %v, want %v", text, got, want)
	}
}

// library is a small set of items of every kind.
func library() map[string]string {
	return map[string]string{
		"project/directives/review/security.md": directive("security", "Security review", "Looks for injection", "Read every handler. It's the spend_limit that counts."),
		"user/directives/review/style.md":       directive("style", "Style review", "Looks at naming", "Read every file."),
		"project/knowledge/notes/zürich.md":     knowledge("Zürich", "travel, trains", "Where the handlers live."),
		"system/tools/rye/core/registry.yaml":   "tool_type: builtin\nexecutor_id: builtin\nversion: 1.0.0\ndescription: Registers handlers\ncategory: core\n",
		"system/tools/rye/corex/other.yaml":     "tool_type: builtin\nexecutor_id: builtin\nversion: 1.0.0\ndescription: Other\n",
	}
}

func TestFinds(t *testing.T) {
	t.Parallel()
	x := newWorld(t, library()).open()
	const (
		security = "project/directive/review/security"
		style    = "user/directive/review/style"
		zurich   = "project/knowledge/notes/zürich"
		registry = "system/tool/rye/core/registry"
		other    = "system/tool/rye/corex/other"
	)
	tests := []struct {
		text string
		want []string
	}{
		{"injection", []string{security}},
		{"INJECTION", []string{security}},
		{"read every", []string{security, style}},
		{"read handler", []string{security}},
		{`"every handler"`, []string{security}},
		{`"handler every"`, nil},
		{"handler", []string{security}},
		{"handler*", []string{security, zurich, registry}},
		{`"every hand"*`, []string{security}},
		{"regis*", []string{registry}},
		{"rye/core/registry", []string{registry}},
		{"review/style", []string{style}},
		{"spend_limit", []string{security}},
		{"limit", []string{security}},
		{"it's", []string{security}},
		{"zurich", []string{zurich}},
		{"trains", []string{zurich}},
		{"*", []string{security, style, zurich, registry, other}},
		{" ** ", []string{security, style, zurich, registry, other}},
		{"injection *", []string{security}},
		{"trains OR injection", []string{security, zurich}},
		{"handlers NOT regis*", []string{zurich}},
		{"NOT handler*", []string{style, other}},
		{"* NOT handler*", []string{style, other}},
		{"NOT *", nil},
		{"NOT NOT injection", []string{security}}, //nolint:dupword // it is what is tried
		{"read AND (injection OR naming)", []string{security, style}},
		{"read (injection OR naming) NOT style", []string{security}},
		{`read "OR" naming`, nil},
		{"(read every) OR trains OR (nothing (here))", []string{security, style, zurich}},
		{"trains OR NOT review", []string{zurich, registry, other}},
		{"read or naming", nil},
		{"read AND every", []string{security, style}},
		{`read "AND" every`, nil},
		{"read (every)", []string{security, style}},
		{"nothing-like-this", nil},
	}
	for _, tt := range tests {
		wantIDs(t, x, tt.text, tt.want...)
	}
}

func TestHit(t *testing.T) {
	t.Parallel()
	x := newWorld(t, library()).open()
	page := find(t, x, search.Query{Text: "injection"})
	want := search.Hit{
		ID: "review/security", Name: "security", Description: "Looks for injection", Category: "testing",
		Score: 1, Type: item.Directive, Source: item.Project,
		Preview: "Read every handler. It's the spend_limit that counts.",
	}
	if len(page.Results) != 1 || fmt.Sprintf("%+v", page.Results[0]) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", page.Results, want)
	}
	if page.Total != 1 || page.Query != "injection" || page.Limit != search.DefaultLimit {
		t.Errorf("page %+v", page)
	}
	tool := find(t, x, search.Query{Text: "registry"}).Results[0]
	if tool.Name != "registry" || tool.Description != "Registers handlers" || tool.Category != "core" {
		t.Errorf("tool %+v", tool)
	}
}

func TestPreviewShowsTheMatch(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("filler ", 300) + "needle" + strings.Repeat(" filler", 300)
	x := newWorld(t, map[string]string{"project/knowledge/long.md": knowledge("Long", "", body)}).open()
	for _, text := range []string{"needle", "*"} {
		preview := find(t, x, search.Query{Text: text}).Results[0].Preview
		if len(preview) > 400 || strings.Contains(preview, "needle") != (text == "needle") {
			t.Errorf("%s: preview %q", text, preview)
		}
	}
}

func TestWeights(t *testing.T) {
	t.Parallel()
	pad := func(word string) string { return "one two three " + word + " four five" }
	x := newWorld(t, map[string]string{
		"project/directives/d1.md": directive("n", pad("needle"), pad("x"), pad("x")),
		"project/directives/d2.md": directive("n", pad("x"), pad("needle"), pad("x")),
		"project/directives/d3.md": directive("n", pad("x"), pad("x"), pad("needle")),
	}).open()
	page := find(t, x, search.Query{Text: "needle"})
	if got := ids(page); !slices.Equal(got, []string{"project/directive/d1", "project/directive/d2", "project/directive/d3"}) {
		t.Errorf("order %v, want title, description, body", got)
	}
	for i, hit := range page.Results {
		if hit.Score <= 0 || hit.Score > 1 || i > 0 && hit.Score >= page.Results[i-1].Score {
			t.Errorf("score %d is %v", i, hit.Score)
		}
	}
}

func TestShadowing(t *testing.T) {
	t.Parallel()
	same := directive("same", "Same", "The same", "Words")
	x := newWorld(t, map[string]string{
		"project/directives/a/same.md": same,
		"user/directives/a/same.md":    same,
		"system/directives/a/same.md":  same,
		"system/knowledge/a/same.md":   knowledge("Same", "", "Another kind"),
		"user/directives/a/b.md":       directive("b", "Same", "The same", "Words"),
	}).open()
	page := find(t, x, search.Query{Text: "words", Scope: "directive.a.same"})
	want := []search.Hit{
		{Source: item.Project, Shadows: []item.Space{item.User, item.System}},
		{Source: item.User, Shadows: []item.Space{item.System}, ShadowedBy: item.Project},
		{Source: item.System, ShadowedBy: item.Project},
	}
	if len(page.Results) != len(want) {
		t.Fatalf("found %v", ids(page))
	}
	for i, hit := range page.Results {
		if hit.Source != want[i].Source || !slices.Equal(hit.Shadows, want[i].Shadows) || hit.ShadowedBy != want[i].ShadowedBy {
			t.Errorf("hit %d: %+v, want %+v", i, hit, want[i])
		}
	}
	other := find(t, x, search.Query{Text: "*", Scope: "knowledge"}).Results[0]
	if len(other.Shadows) > 0 || other.ShadowedBy != "" {
		t.Errorf("an item of another kind shadows: %+v", other)
	}
	// Equal scores: by space, then by id.
	tied := ids(find(t, x, search.Query{Text: "words"}))
	if !slices.IsSortedFunc(tied, func(a, b string) int {
		return spaceOrder(a) - spaceOrder(b)
	}) {
		t.Errorf("ties in order %v", tied)
	}
}

func spaceOrder(id string) int {
	space, _, _ := strings.Cut(id, "/")
	return slices.Index(item.Spaces(), item.Space(space))
}

func TestPages(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 105 {
		files[fmt.Sprintf("project/knowledge/n%03d.md", i)] = knowledge("Note", "", "common")
	}
	x := newWorld(t, files).open()
	tests := []struct {
		limit, offset   int
		first           string
		count, withLeft int
	}{
		{0, 0, "n000", 20, 20},
		{-5, -5, "n000", 20, 20},
		{1000, 0, "n000", 100, 100},
		{10, 100, "n100", 5, 10},
		{10, 500, "", 0, 10},
	}
	for _, text := range []string{"common", "*"} {
		for _, tt := range tests {
			page := find(t, x, search.Query{Text: text, Limit: tt.limit, Offset: tt.offset})
			if page.Total != 105 || len(page.Results) != tt.count || page.Limit != tt.withLeft {
				t.Errorf("%s %+v: total %d, %d results, limit %d", text, tt, page.Total, len(page.Results), page.Limit)
			}
			if tt.count > 0 && page.Results[0].ID != tt.first {
				t.Errorf("%s %+v: first is %s", text, tt, page.Results[0].ID)
			}
		}
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	x := newWorld(t, library()).open()
	tests := []struct {
		scope string
		want  int
	}{
		{"", 5}, {"*", 5}, {"rye.search.*", 5},
		{"directive", 2}, {"directive.*", 2}, {"rye.search.directive", 2}, {"rye.search.directive.*", 2},
		{"tool", 2}, {"knowledge", 1},
		{"tool.rye.core.*", 1}, {"rye.search.tool.rye.core.*", 1}, {"tool/rye/core/*", 1},
		{"tool.rye.core", 1}, {"tool.rye.core.registry", 1}, {"tool.rye.core*", 2}, {"tool.*.other", 1},
		{"tool.rye.cor?.registry", 1}, {"tool.rye.[c]ore.*", 0}, {"tool.rye.regis", 0},
	}
	for _, tt := range tests {
		if page := find(t, x, search.Query{Text: "*", Scope: tt.scope}); page.Total != tt.want {
			t.Errorf("scope %q: %d items, want %d", tt.scope, page.Total, tt.want)
		}
	}
}

func TestQueryErrors(t *testing.T) {
	t.Parallel()
	x := newWorld(t, library()).open()
	tests := []struct {
		text, scope string
		pos         int
		reason      string
	}{
		{"", "", 0, "* alone to list everything"},
		{"  \t", "", 0, "no word"},
		{"-- / \"\"", "", 0, "no word"},
		{"-- / ()", "", 6, "nothing stands before"},
		{`say "not closed`, "", 4, "not closed"},
		{strings.Repeat("x", 5000), "", 4096, "longer"},
		{"lint OR", "", 7, "missing"},
		{"lint OR OR format", "", 8, "both sides"}, //nolint:dupword // it is what is tried
		{"OR lint", "", 0, "both sides"},
		{"NOT", "", 3, "missing"},
		{"AND", "", 0, "both sides"},
		{"lint NOT", "", 8, "missing"},
		{"(lint", "", 0, "not closed"},
		{"lint (", "", 5, "not closed"},
		{"lint (a OR (b c)", "", 5, "not closed"},
		{"lint) x", "", 4, "no parenthesis is open"},
		{"(a OR )", "", 6, "nothing stands before"},
		{"a*b", "", 1, "end of a word"},
		{"x *y", "", 2, "end of a word"},
		{"x", "tools", 0, `no item type "tools"; valid are`},
		{"x", "rye.search.tools.*", 11, "no item type"},
		{"x", "rye.execute.tool.*", 4, "not about searching"},
		{"x", "tool.", 5, "empty part"},
		{"x", "tool.rye..core", 5, "empty part"},
		{"x", "tool.rye core", 8, "character"},
		{"x", "tool." + strings.Repeat("*a", 30_000), 1024, "longer"},
	}
	for _, tt := range tests {
		_, err := x.Search(context.Background(), search.Query{Text: tt.text, Scope: tt.scope})
		pos, reason, ok := malformed(err)
		if !ok || pos != tt.pos || !strings.Contains(reason, tt.reason) {
			t.Errorf("%.20q in %q: %v, want position %d and %q", tt.text, tt.scope, err, tt.pos, tt.reason)
		}
	}
}

// malformed reports where a query or a scope is none, and why.
func malformed(err error) (pos int, reason string, ok bool) {
	if e, ok := errors.AsType[*search.QueryError](err); ok {
		return e.Pos, e.Reason, true
	}
	if e, ok := errors.AsType[*search.ScopeError](err); ok {
		return e.Pos, e.Reason, true
	}
	return 0, "", false
}

func TestUnparsableItemIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{
		"project/directives/bad/one.md": "# Broken\n\nno block here, only a walrus\n",
		"project/tools/bad/two.yaml":    "a: [\n",
		"project/knowledge/bad/nul.md":  "\x00\xff",
	})
	x := w.open()
	for text, id := range map[string]string{
		"bad/one": "bad/one", ".ai/directives/bad/one.md": "bad/one", "walrus": "bad/one",
		"bad/two": "bad/two", "nul": "bad/nul",
	} {
		page := find(t, x, search.Query{Text: text})
		if page.Total != 1 || page.Results[0].ID != id {
			t.Errorf("%q finds %v, want %s", text, ids(page), id)
			continue
		}
		if got := page.Results[0].Description; !strings.HasPrefix(got, "does not parse: ") {
			t.Errorf("%q: description %q", text, got)
		}
	}
	w.write("project/directives/bad/one.md", directive("one", "Mended", "Fine now", "text"))
	if got := find(t, x, search.Query{Text: "mended"}).Results[0].Description; got != "Fine now" {
		t.Errorf("after mending: %q", got)
	}
}

// TestAnyText searches for texts that the query language of the database gives a
// meaning.
func TestAnyText(t *testing.T) {
	t.Parallel()
	x := newWorld(t, library()).open()
	piece := rapid.SampledFrom([]string{
		"AND", "OR", "NOT", "NEAR(a b)", "a", "-b", ":", "name:x", "^", "(", ")", "{", "}", "+", "*", `"`, `""`, "'", ";",
		"\x00", "\xff", " ", "\n", "rye/core", "--", "ü", "𝔘", "words MATCH", ",", "\\", "%", "[", "\u200b", "１",
	})
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(r, "pieces"), "")
		scope := rapid.SampledFrom([]string{"", "tool.*"}).Draw(r, "scope") + strings.Join(rapid.SliceOfN(piece, 0, 1).Draw(r, "scope piece"), "")
		page, err := x.Search(context.Background(), search.Query{Text: text, Scope: scope})
		if _, _, bad := malformed(err); err != nil && !bad {
			r.Fatalf("%q in %q: %v", text, scope, err)
		}
		if len(page.Results) > page.Total {
			r.Fatalf("%d results of %d", len(page.Results), page.Total)
		}
	})
}

func TestManyWords(t *testing.T) {
	t.Parallel()
	x := newWorld(t, library()).open()
	for _, text := range []string{strings.Repeat("a ", 2000), strings.Repeat(`"b" `, 1000), strings.Repeat("c/", 2000)} {
		if page := find(t, x, search.Query{Text: text}); page.Total != 0 {
			t.Errorf("found %v", ids(page))
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("handler", "")
	f.Add(`"a b"* c* -d NEAR(x)`, "rye.search.tool.rye.*")
	f.Add("\x00\"", "tool.[")
	x := newWorld(f, library()).open()
	f.Fuzz(func(t *testing.T, text, scope string) {
		_, err := x.Search(context.Background(), search.Query{Text: text, Scope: scope})
		if pos, reason, bad := malformed(err); bad {
			if reason == "" || pos < 0 || pos > max(len(text), len(scope)) {
				t.Errorf("%v", err)
			}
		} else if err != nil {
			t.Errorf("%q in %q: %v", text, scope, err)
		}
	})
}

// brokenSource fails to list.
type brokenSource struct{ resolve.Resolver }

func (*brokenSource) All(item.Kind) ([]resolve.Entry, error)   { return nil, fs.ErrPermission }
func (*brokenSource) Items(item.Kind) ([]resolve.Entry, error) { return nil, fs.ErrPermission }

func TestSourceFailure(t *testing.T) {
	t.Parallel()
	x, err := search.Open(context.Background(), "", &brokenSource{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Close() }()
	if _, err := x.Search(context.Background(), search.Query{Text: "*"}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v, want the source's", err)
	}
}

// A word of a script without blanks is found within a sentence, and the preview shows it.
func TestScriptsWithoutBlanks(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("他のことも書いてあります。", 40)
	w := newWorld(t, map[string]string{
		"project/knowledge/ja.md": "---\ntitle: 手引き\n---\n\n" + filler + "全文検索エンジンの使い方とサーバーの設定。GPT4も使えます。\n",
		"project/knowledge/zh.md": "---\ntitle: 指南\n---\n\n" + strings.Repeat("这里还有别的内容。", 40) + "如何使用全文搜索引擎。\n",
		"project/knowledge/th.md": "---\ntitle: คู่มือ\n---\n\nวิธีใช้เครื่องมือค้นหาข้อความ\n",
		"project/knowledge/ko.md": "---\ntitle: 안내\n---\n\n전문 검색 엔진의 사용법\n",
	})
	x := w.open()
	for text, want := range map[string]string{
		"検索": "ja", "エンジン": "ja", "エンジン*": "ja", "サーバー": "ja", "使い方 検索": "ja", `"全文検索"`: "ja", "gpt4": "ja", "GPT4も": "ja", "手引": "ja",
		"索検": "", "検索 NOT エンジン": "", "搜索": "zh", "搜索引擎": "zh", "全文": "ja zh", "ค้นหา": "th", "เครื่องมือ": "th", "คู่มือ": "th",
		"검색": "ko", "색": "", "사용*": "ko",
	} {
		page := find(t, x, search.Query{Text: text})
		found := ids(page)
		for i, id := range found {
			found[i] = path.Base(id)
		}
		slices.Sort(found)
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s finds %q, want %q", text, got, want)
		}
	}
	for text, shown := range map[string]string{"検索": "検索", "gpt4": "GPT4", "搜索引擎": "搜索引擎"} {
		if page := find(t, x, search.Query{Text: text}); page.Total != 1 || !strings.Contains(page.Results[0].Preview, shown) {
			t.Errorf("%s: %+v", text, page.Results)
		}
	}
	page := find(t, x, search.Query{Text: "検索窓口", Options: search.Options{Fuzzy: 3}})
	if page.Total != 0 {
		t.Errorf("fuzzy: %v", ids(page))
	}
	if page = find(t, x, search.Query{Text: strings.Repeat("検索", 600)}); page.Total != 0 {
		t.Errorf("a long one: %v", ids(page))
	}
}
