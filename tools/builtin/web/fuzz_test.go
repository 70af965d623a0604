package web

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

// FuzzPage reads pages of strangers in each format. Text that is shown ends its element nowhere.
func FuzzPage(f *testing.F) {
	for _, source := range []string{
		"<html><title>T</title><body><p>a<b>b</b><table><tr><td>1<td>2</table>", "<script>x</script><style>y</style>z", "</web_page>", "&lt;/web_page&gt;",
		"<pre>\n a\n</pre><li>b<img alt='</web_page>'>", "<base href='http://[::1'><a href='javascript:x'>y</a>", "\xff<\x00>",
	} {
		f.Add(source)
	}
	at, err := url.Parse("https://example.com/a/b")
	if err != nil {
		f.Fatal(err)
	}
	ends := regexp.MustCompile(`(?i)</\s*web_page(?:[\s/>]|$)`)
	f.Fuzz(func(t *testing.T, source string) {
		shown := []string{betweenTags(source)}
		for _, format := range []string{formatMarkdown, formatText, formatHTML} {
			d := &document{}
			d.page(source, at, format)
			shown = append(shown, d.text, oneLine(d.title, 100))
		}
		for _, text := range shown {
			text = fence("web_page", attribute("title", text), visible(text))
			if !utf8.ValidString(text) || len(ends.FindAllString(text, -1)) != 1 {
				t.Fatalf("%q is shown as %q", source, text)
			}
		}
	})
}

// FuzzAnswers reads what search providers answer. There are no more results than were asked for, each
// with an address of the web, on one line.
func FuzzAnswers(f *testing.F) {
	for _, answer := range []string{
		`{"web":{"results":[{"title":"<b>T</b>","url":"https://a.example/","text":"x\ny"},{"url":"file:///etc/passwd"},{"url":1}]}}`,
		`{"web":{"results":{}}}`, `{"web":[]}`, `[]`, `null`, `{`, `{"web":{"results":[null,[],{"url":"http://\u0000/"}]}}`,
	} {
		f.Add([]byte(answer))
	}
	q := query{provider: config.SearchProvider{Results: "web.results", Title: "title", Link: "url", Text: "text"}, count: 2}
	f.Fuzz(func(t *testing.T, answer []byte) {
		all, err := q.read(answer)
		if err != nil && all != nil || len(all) > q.count {
			t.Fatalf("%d results of %q, %v", len(all), answer, err)
		}
		for _, one := range all {
			if !strings.HasPrefix(strings.ToLower(one.link), "http") || strings.ContainsAny(one.title+one.link+one.text, "\n\r\x1b") {
				t.Fatalf("%q gives %+v", answer, one)
			}
		}
		if shown := fence(resultsElement, "", listed(all)); strings.Count(shown, "</"+resultsElement) != 1 {
			t.Fatalf("%q is shown as %q", answer, shown)
		}
	})
}
