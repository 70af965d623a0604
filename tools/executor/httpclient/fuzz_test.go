package httpclient

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzValue: a value stays in its place: it is one segment of the path and one value of the query
// and of a form, and says nothing of where the request goes.
func FuzzValue(f *testing.F) {
	for _, value := range []string{"Paris", "..", "a/../b", "?x=1", "#", "@other.example", "%2e%2e", "\r\nX: y", "\x00", "a&q=b", "\\", ":80", ""} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		p := plan(t, `{"url":"https://api.example.com/v1/{v}/end?q={v}&z=1#{v}","method":"POST",
			"headers":{"Content-Type":"application/x-www-form-urlencoded"},"body":"q={v}&z=1"}`, map[string]any{"v": value})
		r, err := newRequest(p)
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		path := r.url.EscapedPath()
		if r.url.Host != "api.example.com" || r.url.Scheme != "https" || r.url.User != nil || strings.Count(path, "/") != 3 ||
			!strings.HasPrefix(path, "/v1/") || !strings.HasSuffix(path, "/end") || strings.Contains(path, "/../") || strings.Contains(path, "/./") {
			t.Fatalf("%q: %s", value, r.url)
		}
		for name, text := range map[string]string{"query": r.url.RawQuery, "form": string(r.body)} {
			values, err := url.ParseQuery(text)
			if err != nil || len(values) != 2 || len(values["q"]) != 1 || values.Get("q") != value || values.Get("z") != "1" {
				t.Fatalf("%q in the %s: %s, %v", value, name, text, err)
			}
		}
	})
}
