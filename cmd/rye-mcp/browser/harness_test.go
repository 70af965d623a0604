package browser_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestHarness shows that what must fail a test does: a tab hears of errors on the console,
// of exceptions, of what a policy forbids and of requests to elsewhere.
func TestHarness(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	in := chromium.inContext(t)
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "script-src 'nonce-n'; require-trusted-types-for 'script'; trusted-types 'none'")
		_, _ = w.Write([]byte(`<!doctype html><title>Bad</title><button aria-label="Say it" aria-disabled=true>x</button>
			<script>document.title = 'an inline script ran'</script>
			<script nonce=n>
				console.error('said to the console');
				setTimeout(() => { document.body.append('later'); document.querySelector('button').removeAttribute('aria-disabled') }, 50);
				setTimeout(() => { throw new Error('thrown') });
				setTimeout(() => document.body.innerHTML = '<b>markup</b>');
				fetch('http://127.0.0.1:1/elsewhere').catch(() => {});
				fetch('/missing').catch(() => {});
			</script>`))
	}))
	t.Cleanup(bad.Close)
	b := newTab(t, in, bad.URL, desktop)
	b.noError(b.page.Navigate(bad.URL))
	b.says("later")
	b.press("button", "^Say it$")
	b.until404()
	wrong := b.wrong()
	for _, want := range []string{"console.error: said to the console", "thrown", "inline", "TrustedHTML", "a request to elsewhere: GET http://127.0.0.1:1/elsewhere", "404"} {
		if !slices.ContainsFunc(wrong, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("nothing was heard of %q; heard:\n%s", want, strings.Join(wrong, "\n"))
		}
	}
	b.allow("")
}

// until404 waits until the page of TestHarness has been told that something is missing.
func (b *tab) until404() {
	b.eval(nil, `() => fetch('/missing').then(r => r.status)`)
}
