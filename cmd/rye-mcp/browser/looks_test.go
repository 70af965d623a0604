package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-rod/rod/lib/proto"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// axeSource is the program that finds what people with disabilities stumble over; empty
// where it is not at hand.
func axeSource(t testing.TB) string {
	t.Helper()
	path := os.Getenv("RYE_AXE")
	if path == "" {
		path = filepath.Join("..", "..", "..", ".ci", ".cache", "axe-core", "node_modules", "axe-core", "axe.min.js")
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Logf("without axe-core, which .ci/run takes from npm: %v", err)
		return ""
	}
	return string(source)
}

// TestLooks: every view, light, dark and on a phone, has nothing that axe finds, and on a phone nothing that
// must be scrolled for sideways.
func TestLooks(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	axe := axeSource(t)
	p := newPlace(t, busy)
	p.rye("keys", "generate")
	p.rye("sign", "--type", "directive", "**")
	s := p.serve()
	in := chromium.inContext(t)
	empty := s.openIn(in, desktop)
	empty.says("no threads|No threads")
	empty.fits(axe, "empty", "")
	parent := s.start("parent", nil)
	asks := s.start("ask", map[string]any{"n": "accessibility"})
	s.start("greet", map[string]any{"name": "Ada"})
	p.untilAsks(asks)
	b := empty
	b.find("treeitem", "^Number below")
	b.find("treeitem", "^Greet Ada.* completed ")
	b.find("heading", "asks you")
	b.fits(axe, "list", "")
	b.openRow("^Go on about accessibility")
	b.fits(axe, "question", "")
	b.openRow("^Look after children")
	for _, name := range b.names("tab") {
		b.press("tab", "^"+name+"$")
		b.eval(nil, `() => ryeTest.until(() => !/^Loading/.test(ryeTest.text(document.querySelector('[role=tabpanel]'))) || undefined).then(() => true)`)
		b.fits(axe, "tab "+name, "")
	}
	b.press("button", "^Cancel$")
	b.fits(axe, "dialog", "")
	b.press("button", "^Cancel 2 threads$")
	b.says("All have ended")
	b.fits(axe, "receipts", "")
	b.press("button", "^Close$", within{"dialog", "."})
	p.untilIs(parent, thread.Cancelled)
	b.press("button", "^Start a directive")
	b.says("Greets somebody")
	b.fits(axe, "directives", "")
	b.press("button", "^greet")
	b.says("Whom to greet")
	b.fits(axe, "form", "")
	b.press("button", "^Spend$")
	b.find("heading", "^Spend$")
	b.says("parent")
	b.fits(axe, "spend", "")
	b.press("button", "^Search$")
	b.fits(axe, "search", "")
	b.press("button", "^Close$", within{"dialog", "."})
	b.press("button", "^Keys and signs$")
	b.fits(axe, "help", "")
}

// fits looks at what is shown in each of the ways that it is shown.
func (b *tab) fits(axe, view, only string) {
	b.Helper()
	for _, way := range []struct {
		name  string
		look  look
		rules []string // of axe; none: all
	}{
		{"light", desktop, nil},
		{"dark", look{width: desktop.width, height: desktop.height, dark: true}, []string{"color-contrast", "link-in-text-block"}},
		{"phone", phone, []string{"color-contrast", "target-size", "scrollable-region-focusable", "meta-viewport"}},
	} {
		if only != "" && way.name != only {
			continue
		}
		b.show(way.look)
		if dir := os.Getenv("RYE_BROWSER_PICTURES"); dir != "" {
			b.noError(b.picture(filepath.Join(dir, strings.ReplaceAll(view, " ", "-")+"-"+way.name+".png")))
		}
		var wide int
		b.eval(&wide, `() => document.documentElement.scrollWidth - document.documentElement.clientWidth`)
		if wide > 0 {
			b.Errorf("%s, %s: %d pixels wider than the screen: %v", view, way.name, wide, b.widest())
		}
		if axe != "" {
			b.asks(axe, view+", "+way.name, way.rules)
		}
	}
	b.show(desktop)
}

// widest are the elements that stick out.
func (b *tab) widest() []string {
	var out []string
	b.eval(&out, `() => [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).slice(-5).map(e => e.tagName + '.' + (e.getAttribute('class') ?? '') + ' ' + Math.round(e.getBoundingClientRect().right))`)
	return out
}

// asks has axe look at the page, in a world of its own, which the page's policy leaves alone.
func (b *tab) asks(axe, where string, rules []string) {
	b.Helper()
	frame, err := proto.PageGetFrameTree{}.Call(b.page)
	b.noError(err)
	world, err := proto.PageCreateIsolatedWorld{FrameID: frame.FrameTree.Frame.ID, WorldName: "axe"}.Call(b.page)
	b.noError(err)
	_, err = proto.RuntimeEvaluate{ContextID: world.ExecutionContextID, Expression: axe + "; undefined"}.Call(b.page)
	b.noError(err)
	run := "{type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}"
	if rules != nil {
		run = fmt.Sprintf("{type: 'rule', values: ['%s']}", strings.Join(rules, "', '"))
	}
	got, err := proto.RuntimeEvaluate{ContextID: world.ExecutionContextID, AwaitPromise: true, ReturnByValue: true, Expression: `axe.run(document, {runOnly: ` + run + `, resultTypes: ['violations']}).then(r =>
		r.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + v.help + ': ' + n.html.slice(0, 200) + ' ' + (n.any[0]?.message ?? n.all[0]?.message ?? n.none[0]?.message ?? ''))))`}.Call(b.page)
	b.noError(err)
	if got.ExceptionDetails != nil {
		b.Fatalf("%s: axe: %s", where, got.ExceptionDetails.Exception.Description)
	}
	for _, found := range got.Result.Value.Arr() {
		b.Errorf("%s: %s", where, found.Str())
	}
}

// TestKeyboard: everything that can be pressed is reached with the keyboard alone, and it is seen where one is.
func TestKeyboard(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	s := p.serve()
	b := s.open(desktop)
	asks := s.start("ask", map[string]any{"n": "keys"})
	s.start("greet", map[string]any{"name": "Ada"})
	p.untilAsks(asks)
	b.find("heading", "asks you")
	b.find("treeitem", "^Greet Ada.* completed ")
	b.walks("the list")

	// A question is answered without the mouse.
	b.hit("g", "a")
	b.reach("^Stop$")
	b.hit("Enter")
	p.untilIs(asks, thread.Error)
	b.gone("heading", "asks you")

	b.hit("g", "t", "Home")
	b.focused("^Greet Ada|^Go on about")
	b.hit("End", "Home", "ArrowDown", "ArrowUp", "Enter")
	b.find("tab", "^Timeline$")
	b.walks("a thread")
	b.reach("^Transcript$")
	var seen []string
	for range b.names("tab") {
		var name string
		b.eval(&name, `() => ryeTest.name(document.querySelector('[role=tab][aria-selected=true]'))`)
		seen = append(seen, name)
		b.hit("ArrowRight")
	}
	slices.Sort(seen)
	if all := b.names("tab"); len(slices.Compact(seen)) != len(all) {
		t.Errorf("with arrows %q of %q are seen", seen, all)
	}
	b.hit("Escape")
	b.gone("tab", ".")
	b.hit("?")
	b.find("dialog", ".")
	b.hit("Escape")
	b.gone("dialog", ".")
	b.hit("/")
	b.find("dialog", "Search")
	b.noError(b.page.InsertText("Ada"))
	b.find("option", "Ada")
	b.hit("Enter")
	b.gone("dialog", ".")
	b.find("heading", "Ada")
}

// reach presses Tab until something of a name has the focus.
func (b *tab) reach(name string) {
	b.Helper()
	for range 200 {
		var found bool
		b.eval(&found, `name => new RegExp(name).test(ryeTest.name(document.activeElement))`, name)
		if found {
			return
		}
		b.hit("Tab")
	}
	b.Fatalf("Tab does not reach %q", name)
}

func (b *tab) focused(name string) {
	b.Helper()
	var got string
	b.eval(&got, `() => ryeTest.name(document.activeElement)`)
	if !matches(name, got) {
		b.Errorf("the focus is on %q, want %q", got, name)
	}
}

// walks goes through everything with Tab, once around: nothing is left out, and the focus is always seen.
func (b *tab) walks(where string) {
	b.Helper()
	b.eval(nil, `() => {
		document.activeElement?.blur?.();
		globalThis.walked = new Set();
		globalThis.hidden = [];
		addEventListener('focusin', globalThis.onWalk = e => {
			if (walked.has(e.target)) return;
			walked.add(e.target);
			const style = getComputedStyle(e.target);
			const shown = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== 'none' && e.target.matches(':focus-visible');
			if (!shown || !e.target.matches(':focus-visible')) hidden.push(e.target.outerHTML.slice(0, 120));
		}, true);
	}`)
	// Once from where the focus was to the end of the page, and once from its beginning.
	for ends, steps := 0, 0; ends < 2 && steps < 300; steps++ {
		b.hit("Tab")
		var over bool
		b.eval(&over, `() => document.activeElement === document.body`)
		if over {
			ends++
		}
	}
	var count int
	b.eval(&count, `() => walked.size`)
	var missed, hidden []string
	b.eval(&missed, `() => {
		removeEventListener('focusin', onWalk, true);
		return [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
			.filter(e => ryeTest.seen(e) && e.tabIndex >= 0 && !e.disabled && !walked.has(e)).map(e => e.outerHTML.slice(0, 120));
	}`)
	b.eval(&hidden, `() => hidden`)
	if len(missed) > 0 || len(hidden) > 0 || count < 5 {
		b.Errorf("%s: Tab reached %d, not %q; the focus is not seen on %q", where, count, missed, hidden)
	}
}
