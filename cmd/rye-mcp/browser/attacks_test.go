package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestAttackPageWithoutToken: a page is opened without its token, with a wrong one, and with one in the query. It shows no thread, says how to get the address, and its API answers nobody.
func TestAttackPageWithoutToken(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	s := p.serve()
	s.start("hold", map[string]any{"n": "secret"})
	in := chromium.inContext(t)
	for name, path := range map[string]string{
		"absent": "/", "in the query": "/?token=" + s.token, "empty": "/#token=", "wrong": "/#token=" + strings.Repeat("a", len(s.token)), "wrong code": "/#code=abc",
	} {
		b := newTab(t, in, s.origin, desktop)
		b.allow(`status of 40[013]`)
		b.noError(b.page.Navigate(s.origin + path))
		b.says("address")
		if said := b.text(); strings.Contains(said, "secret") || len(b.names("treeitem")) > 0 {
			t.Errorf("%s: it shows %s", name, said)
		}
		asked := b.requests()
		if i := slices.IndexFunc(asked, func(r string) bool { return strings.Contains(r, "token=") }); i >= 0 && name != "in the query" {
			t.Errorf("%s: the token was sent: %s", name, asked[i])
		}
	}
	for _, token := range []string{"", "wrong", s.token + "x", s.token[:len(s.token)-1]} {
		for _, path := range []string{"/ui/api/session", "/ui/api/board", "/ui/api/board?token=" + s.token, "/ui/api/directives"} {
			if status, answer := s.ask(http.MethodGet, path, token, nil); status != http.StatusUnauthorized && status != http.StatusBadRequest || strings.Contains(string(answer), "secret") {
				t.Errorf("%s with token %q: %d %s", path, token, status, answer)
			}
		}
	}
	if strings.Contains(s.readLog(), s.token) {
		t.Error("the token stands in the log")
	}
}

// TestAttackPageOfAnotherPort: a page of another server on this machine, which has the token, asks the API and frames the page. It reads nothing, starts nothing, and the frame stays empty.
func TestAttackPageOfAnotherPort(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	s := p.serve()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, "<!doctype html><title>Other</title><iframe src=%q></iframe>", s.address())
	}))
	t.Cleanup(other.Close)
	b := newTab(t, chromium.inContext(t), other.URL, desktop)
	b.allow("") // everything that goes wrong here is meant to
	b.noError(b.page.Navigate(other.URL))
	var tried map[string]string
	b.eval(&tried, `async (origin, token) => {
		const tried = {};
		const headers = {Authorization: 'Bearer ' + token};
		const body = JSON.stringify({directive: 'greet', inputs: {name: 'Eve'}});
		for (const [name, path, init] of [
			['read', '/ui/api/session', {}], ['read with the token', '/ui/api/board', {headers}], ['credentials', '/ui/api/session', {credentials: 'include'}],
			['start', '/ui/api/start', {method: 'POST', headers: {...headers, 'Content-Type': 'application/json'}, body}],
			['start as text', '/ui/api/start', {method: 'POST', body, mode: 'no-cors'}],
			['start as text with the token', '/ui/api/start', {method: 'POST', body, headers}],
			['the page', '/', {}],
		]) {
			try { const got = await fetch(origin + path, init); tried[name] = got.type + ' ' + (await got.text()); } catch (e) { tried[name] = 'refused'; }
		}
		try { tried.frame = document.querySelector('iframe').contentDocument?.body?.innerText ?? 'refused'; } catch { tried.frame = 'refused'; }
		return tried;
	}`, s.origin, s.token)
	for name, got := range tried {
		if got != "refused" && got != "opaque " {
			t.Errorf("%s: %s", name, got)
		}
	}
	if len(tried) != 8 {
		t.Errorf("%d things were tried: %v", len(tried), tried)
	}
	if all := p.list(); len(all) > 0 {
		t.Errorf("%d threads began", len(all))
	}
}

// TestAttackReadOnlyPage: somebody who was given an address to look with tries to change something. There is nothing to press, and every request that would change something is refused.
func TestAttackReadOnlyPage(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	writing := p.serve()
	id := writing.start("ask", map[string]any{"n": "it"})
	p.untilAsks(id)
	s := p.serve("--page", "read-only")
	b := s.open(desktop)
	b.says("look only")
	b.says("left, then: stop")
	b.openRow("^Go on about it")
	for _, name := range b.names("button") {
		for _, verb := range []string{"Start", "Raise", "Finish", "Stop", "Tell", "Cancel", "Kill", "Fork", "Rename", "Delete", "Resume", "Hand over", "Apply", "Approve"} {
			if strings.HasPrefix(name, verb) {
				t.Errorf("there is a button %q", name)
			}
		}
	}
	var session struct{ Operations []string }
	_, answer := writing.ask(http.MethodGet, "/ui/api/session", writing.token, nil)
	p.noError(unmarshal(answer, &session))
	if len(session.Operations) < 10 {
		t.Fatalf("only operations %q are known", session.Operations)
	}
	paths := []string{"/ui/api/start", "/ui/api/threads/" + string(id) + "/plan-delete"}
	for _, operation := range session.Operations {
		paths = append(paths, "/ui/api/call/"+operation)
	}
	for _, path := range paths {
		body := map[string]any{"thread_id": id, "thread_ids": []thread.ID{id}, "decision": "stop", "directive": "greet", "inputs": map[string]any{"name": "Eve"}}
		if status, answer := s.ask(http.MethodPost, path, s.token, body); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	if all := p.list(); len(all) != 1 || len(p.show(id).Waiting) != 1 {
		t.Errorf("there are %d threads, and %s has %+v", len(all), id, p.show(id))
	}
}

// hostile are texts that a model, a file or a person can bring into the page.
var hostile = []string{
	`<img src=x onerror="globalThis.owned=1">`, `<script>globalThis.owned=2</script>`, `"><svg onload=globalThis.owned=3>`, `javascript:globalThis.owned=4`,
	"\x1b[31mred\x1b]8;;https://evil.example\x07link\x1b]8;;\x07", "\u202egnp.exe\u202c\u2066x\u2069", "${globalThis.owned=5} <%= owned %> {% owned %}",
	"[link](https://evil.example/) ![picture](https://evil.example/x.png)", "a\u0000b\u0085c\u2028d\ufeffe",
}

// TestAttackPageMarkup: names, answers, tools, files and errors of threads hold markup, scripts, links, escape sequences and text that turns other text around. Nothing of it runs, loads or is an element, and what cannot be seen is made visible.
func TestAttackPageMarkup(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy+hostileModel())
	s := p.serve()
	b := s.open(desktop)
	id := s.start("evil", map[string]any{"text": strings.Join(hostile, " ")})
	if got := p.untilEnded(id); got.Status != thread.Completed {
		t.Fatalf("the hostile thread became %+v", got)
	}
	long := s.start("evil", map[string]any{"text": strings.Repeat("x", 100<<10)})
	p.untilEnded(long)
	for _, name := range []string{hostile[0], strings.Join(hostile, "")} {
		status, answer := s.ask(http.MethodPost, "/ui/api/call/rename_thread", s.token, map[string]any{"thread_id": id, "name": name})
		if status == http.StatusOK {
			b.find("treeitem", "img src=x")
		} else if status != http.StatusUnprocessableEntity && status != http.StatusBadRequest {
			t.Errorf("a name: %d %s", status, answer)
		}
	}
	for _, one := range []thread.ID{id, long} {
		b.noError(b.page.Navigate(s.origin + "/#/t/" + strings.ReplaceAll(string(one), "/", "%2F")))
		b.find("tab", "^Timeline$")
		for _, name := range b.names("tab") {
			b.press("tab", "^"+name+"$")
			b.clean(fmt.Sprintf("%s of %s", name, one))
		}
	}
	b.press("button", "^Start a directive")
	b.press("button", "^evil")
	b.clean("the form")
	b.press("button", "^Search$")
	b.fill("Search for", "owned")
	b.says("place|Nothing found")
	b.clean("search")
}

// clean checks that nothing which came from elsewhere has become anything but text.
func (b *tab) clean(where string) {
	b.Helper()
	b.settle()
	var found struct {
		Owned    any
		Elements []string
		Bidi     string
		Wide     int
	}
	b.eval(&found, `() => ({
		Owned: globalThis.owned ?? null,
		Elements: [...document.querySelectorAll('img, script:not([src^="/ui/"]), iframe, object, embed, base, link:not([href^="/ui/"]), a[href^="javascript"], a[href*="//"], [onerror], [onload], [onclick], style')].map(e => e.outerHTML.slice(0, 200)),
		Bidi: (document.body.textContent.match(/.{0,20}[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u000e-\u001f\u007f-\u009f]/) ?? [''])[0],
		Wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
	})`)
	if found.Owned != nil || len(found.Elements) > 0 || found.Bidi != "" || found.Wide > 0 {
		b.Errorf("%s: %+v", where, found)
	}
}

// hostileModel is a directive whose model, tools and files say what is hostile.
func hostileModel() string {
	var turns strings.Builder
	for i, text := range hostile {
		fmt.Fprintf(&turns, "  - match: {first: Say evil, turn: %d}\n    text: %q\n    reasoning: %q\n    tool_calls:\n", i+1, text, text)
		fmt.Fprintf(&turns, "      - {name: rye_file_system_write, input: {path: %q, content: %q}}\n", strings.ReplaceAll(text, "/", "_"), text)
		fmt.Fprintf(&turns, "      - {name: %q, input: {q: %q}}\n", text, text)
	}
	return `-- .ai/directives/evil.md --
'''xml
<directive name="evil" version="1.0.0">
  <metadata><description>&lt;img src=x onerror="globalThis.owned=6"&gt;</description><model tier="fast" /><limits turns="20" spend="0.40" tokens="900000" on_limit="stop" />
    <permissions><execute><tool>rye.file-system.*</tool></execute></permissions></metadata>
  <inputs><input name="text" type="string" required="true">&lt;b onclick="globalThis.owned=7"&gt;</input></inputs>
</directive>
'''

Say evil: {input:text}
-- model.yaml --
turns:
` + turns.String() + "  - text: " + fmt.Sprintf("%q", strings.Join(hostile, "\n")) + "\n"
}

// TestAttackManyPages: somebody opens 200 pages of one server at once. All hear of a change, and the server goes on.
func TestAttackManyPages(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	s := p.serve()
	in := chromium.inContext(t)
	tabs := []*tab{s.openIn(in, desktop), s.openIn(in, phone), s.openIn(in, desktop)}
	heard := make(chan error, 200)
	for range cap(heard) {
		go func() { heard <- s.hears("Number one") }()
	}
	s.start("hold", map[string]any{"n": "one"})
	for _, b := range tabs { // those that are behind others hear nothing: a browser has six connections to a server
		_, err := b.page.Activate()
		b.noError(err)
		b.find("treeitem", "^Number one")
	}
	deadline := time.After(2 * patience)
	for range cap(heard) {
		select {
		case err := <-heard:
			if err != nil {
				t.Error(err)
			}
		case <-deadline:
			t.Fatal("not all pages hear of it")
		}
	}
}
