package browser_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/input"
	"github.com/go-rod/rod/lib/proto"
)

// tab is a page in a browser context, and what went wrong in it.
type tab struct {
	testing.TB
	place  *place // nil in the test of the harness
	page   *rod.Page
	origin string // the only one that may be asked for anything

	mu       sync.Mutex
	problems []string
	allowed  []*regexp.Regexp
	asked    []string // "METHOD path" of the requests so far
	settled  chan struct{}
}

// look is how a tab shows a page.
type look struct {
	width, height int
	dark, reduced bool
	mobile        bool
}

var (
	desktop = look{width: 1280, height: 860}
	phone   = look{width: 360, height: 740, mobile: true}
)

// open opens the page of a server in a context of its own.
func (s *server) open(l look) *tab {
	s.p.Helper()
	return s.openIn(chromium.inContext(s.p), l)
}

// openIn opens the page in a context that has others.
func (s *server) openIn(in *rod.Browser, l look) *tab {
	s.p.Helper()
	b := newTab(s.p, in, s.origin, l)
	b.place = s.p
	b.noError(b.page.Navigate(s.address()))
	return b
}

// newTab is an empty tab that may ask an origin alone.
func newTab(t testing.TB, in *rod.Browser, origin string, l look) *tab {
	t.Helper()
	page, err := in.Page(proto.TargetCreateTarget{URL: "about:blank"})
	if err != nil {
		t.Fatal(err)
	}
	b := &tab{TB: t, page: page, origin: origin, settled: make(chan struct{}, 1)}
	b.show(l)
	watched := page.EachEvent(b.consoleCalled, b.logged, b.thrown, b.requested, b.issued)
	go watched()
	for _, enable := range []proto.Request{proto.RuntimeEnable{}, proto.LogEnable{}, proto.NetworkEnable{}, proto.AuditsEnable{}, proto.PageEnable{}} {
		_, err := page.Call(page.GetContext(), string(page.SessionID), enable.ProtoReq(), enable)
		b.noError(err)
	}
	_, err = page.EvalOnNewDocument(finders)
	b.noError(err)
	t.Cleanup(b.end)
	return b
}

// show sets size and preferences.
func (b *tab) show(l look) {
	b.Helper()
	b.noError(b.page.SetViewport(&proto.EmulationSetDeviceMetricsOverride{Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.mobile}))
	scheme, motion := "light", "no-preference"
	if l.dark {
		scheme = "dark"
	}
	if l.reduced {
		motion = "reduce"
	}
	b.noError(proto.EmulationSetEmulatedMedia{Features: []*proto.EmulationMediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion},
	}}.Call(b.page))
}

// allow lets something go wrong that a test means to.
func (b *tab) allow(expression string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, regexp.MustCompile(expression))
}

func (b *tab) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, text)
}

// settledMark is what a tab writes to its console when everything before it was heard.
const settledMark = "everything until here was heard"

func (b *tab) consoleCalled(e *proto.RuntimeConsoleAPICalled) {
	var words []string
	for _, arg := range e.Args {
		word := arg.Description
		if word == "" {
			word = arg.Value.String()
		}
		words = append(words, word)
	}
	switch text := strings.Join(words, " "); {
	case text == settledMark:
		b.settled <- struct{}{}
	case e.Type == proto.RuntimeConsoleAPICalledTypeError || e.Type == proto.RuntimeConsoleAPICalledTypeWarning || e.Type == proto.RuntimeConsoleAPICalledTypeAssert:
		b.problem("console.%s: %s", e.Type, text)
	}
}

func (b *tab) logged(e *proto.LogEntryAdded) {
	if e.Entry.Level == proto.LogLogEntryLevelError || e.Entry.Level == proto.LogLogEntryLevelWarning {
		b.problem("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
	}
}

func (b *tab) thrown(e *proto.RuntimeExceptionThrown) {
	text := e.ExceptionDetails.Text
	if e.ExceptionDetails.Exception != nil {
		text += " " + e.ExceptionDetails.Exception.Description
	}
	b.problem("exception: %s", text)
}

func (b *tab) requested(e *proto.NetworkRequestWillBeSent) {
	at, ours := strings.CutPrefix(e.Request.URL, b.origin)
	if !ours && !strings.HasPrefix(e.Request.URL, "data:") && !strings.HasPrefix(e.Request.URL, "blob:"+b.origin) {
		b.problem("a request to elsewhere: %s %.200s", e.Request.Method, e.Request.URL)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, e.Request.Method+" "+at)
}

func (b *tab) issued(e *proto.AuditsIssueAdded) {
	if e.Issue.Code == proto.AuditsInspectorIssueCodeContentSecurityPolicyIssue {
		d := e.Issue.Details.ContentSecurityPolicyIssueDetails
		b.problem("content security policy: %s %s", d.ViolatedDirective, d.BlockedURL)
	}
}

// requests are those so far, as "METHOD path".
func (b *tab) requests() []string {
	b.settle()
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked)
}

// settle waits until everything that has happened in the tab was heard.
func (b *tab) settle() {
	b.Helper()
	if _, err := b.page.Timeout(patience).Eval(`text => console.debug(text)`, settledMark); err != nil {
		b.Errorf("the tab does not answer any more: %v", err)
		return
	}
	select {
	case <-b.settled:
	case <-time.After(patience):
		b.Error("the tab's events are not heard any more")
	}
}

// wrong are the problems so far that are not allowed.
func (b *tab) wrong() []string {
	b.settle()
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.problems), func(problem string) bool {
		return slices.ContainsFunc(b.allowed, func(re *regexp.Regexp) bool { return re.MatchString(problem) })
	})
}

func (b *tab) end() {
	for _, problem := range b.wrong() {
		b.Error(problem)
	}
	if b.Failed() {
		b.keepPicture()
	}
	if err := b.page.Close(); err != nil {
		b.Error(err)
	}
}

func (b *tab) noError(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// finders are found in every document as globalThis.ryeTest: what a person sees, by role
// and name, and waiting for it without asking again and again.
const finders = `(() => {
const roles = {
	button: 'button:not([role]), [role=button], summary', link: 'a[href], [role=link]', tab: '[role=tab]', treeitem: '[role=treeitem]', row: 'tr, [role=row]',
	textbox: 'input:not([type]), input[type=text], input[type=number], input[type=search], input[type=password], textarea, [role=textbox]',
	checkbox: 'input[type=checkbox], [role=checkbox]', radio: 'input[type=radio], [role=radio]', combobox: 'select, [role=combobox]',
	dialog: 'dialog[open], [role=dialog], [role=alertdialog]', heading: 'h1, h2, h3, h4, [role=heading]', option: 'option, [role=option]',
	alert: '[role=alert]', status: '[role=status], [aria-live]', tree: '[role=tree], [role=treegrid]', any: '*',
	menuitem: '[role=menuitem]', article: 'article, [role=article]', listitem: 'li, [role=listitem]', tabpanel: '[role=tabpanel]', group: 'fieldset, section, [role=group], [role=region]',
};
const text = e => (e.innerText ?? e.textContent ?? '').replace(/\s+/g, ' ').trim();
const seen = e => e.getClientRects().length > 0 && e.checkVisibility({visibilityProperty: true, opacityProperty: true});
const name = e => {
	const by = e.getAttribute('aria-labelledby');
	if (by) return by.split(/\s+/).map(id => text(document.getElementById(id) ?? {})).join(' ');
	const said = e.getAttribute('aria-label');
	if (said) return said.trim();
	if (e.labels?.length) return [...e.labels].map(text).join(' ');
	return text(e) || e.getAttribute('title') || e.getAttribute('placeholder') || '';
};
const all = (role, pattern, within) => {
	const re = new RegExp(pattern);
	const roots = within ? all(within.role, within.name) : [document];
	return roots.flatMap(root => [...root.querySelectorAll(roles[role])]).filter(e => seen(e) && re.test(name(e)));
};
const until = look => new Promise(done => {
	let change, tick;
	const check = () => {
		const found = look();
		if (!found) return false;
		change?.disconnect();
		clearInterval(tick);
		done(found);
		return true;
	};
	if (check()) return;
	change = new MutationObserver(check);
	change.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
	tick = setInterval(check, 250); // styles change without a mutation
});
globalThis.ryeTest = {all, until, text, name, seen,
	find: (role, pattern, within) => until(() => all(role, pattern, within)[0]),
	enabled: (role, pattern, within) => until(() => all(role, pattern, within).find(e => !e.disabled && e.getAttribute('aria-disabled') !== 'true')),
	says: pattern => { const re = new RegExp(pattern); return until(() => re.test(text(document.body)) || undefined); },
	gone: (role, pattern) => until(() => all(role, pattern).length === 0 || undefined),
};
})()`

// within narrows what is looked for to what is in another thing.
type within struct {
	Role string `json:"role"`
	Name string `json:"name"`
}

// find waits for something visible of a role whose name matches an expression.
func (b *tab) find(role, name string, in ...within) *rod.Element {
	b.Helper()
	return b.await("find", role, name, in)
}

func (b *tab) await(how, role, name string, in []within) *rod.Element {
	b.Helper()
	var where any
	if len(in) > 0 {
		where = in[0]
	}
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	e, err := b.page.Context(ctx).ElementByJS(rod.Eval(`(how, role, name, where) => ryeTest[how](role, name, where)`, how, role, name, where).ByPromise())
	if err != nil {
		b.Fatalf("no %s %q%s: %v; there are %q; the page says:\n%s", role, name, fmt.Sprint(in), err, b.names(role), b.text())
	}
	return e.Context(b.Context())
}

// press clicks, with the mouse, what can be pressed.
func (b *tab) press(role, name string, in ...within) {
	b.Helper()
	for tries := 1; ; tries++ {
		e := b.await("enabled", role, name, in)
		err := clickStill(e.Timeout(patience / 10))
		if err == nil {
			return
		}
		if tries == 5 { // an element that was found can be drawn anew before the mouse is there; a person looks again
			b.Fatalf("press %s %q: %v; the page says:\n%s", role, name, err, b.text())
		}
	}
}

// clickStill points at something, and clicks it when it does not move any more, as a person
// does: the element that the pointer left may give its room back.
func clickStill(e *rod.Element) error {
	if err := e.Hover(); err != nil {
		return err
	}
	if err := e.WaitStableRAF(); err != nil {
		return err
	}
	return e.Click(proto.InputMouseButtonLeft, 1)
}

// fill writes into a field in place of what is there.
func (b *tab) fill(name, value string, in ...within) {
	b.Helper()
	e := b.await("enabled", "textbox", name, in)
	b.noError(e.SelectAllText())
	b.noError(e.Input(value))
}

// choose selects an option of a field by its text.
func (b *tab) choose(name, option string, in ...within) {
	b.Helper()
	e := b.await("enabled", "combobox", name, in)
	b.noError(e.Select([]string{option}, true, rod.SelectorTypeText))
}

// says waits until the visible text matches an expression.
func (b *tab) says(expression string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	_, err := b.page.Context(ctx).Evaluate(rod.Eval(`expression => ryeTest.says(expression).then(() => true)`, expression).ByPromise())
	if err != nil {
		b.Fatalf("it does not say %q: %v; the page says:\n%s", expression, err, b.text())
	}
}

// gone waits until nothing of a role and name is there any more.
func (b *tab) gone(role, name string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	_, err := b.page.Context(ctx).Evaluate(rod.Eval(`(role, name) => ryeTest.gone(role, name).then(() => true)`, role, name).ByPromise())
	if err != nil {
		b.Fatalf("the %s %q is still there: %v; the page says:\n%s", role, name, err, b.text())
	}
}

// names are those of what is visible of a role.
func (b *tab) names(role string) []string {
	b.Helper()
	var names []string
	b.eval(&names, `role => ryeTest.all(role, '').map(ryeTest.name)`, role)
	return names
}

// eval runs an expression of the test in the page and decodes its value.
func (b *tab) eval(into any, js string, args ...any) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	got, err := b.page.Context(ctx).Evaluate(rod.Eval(js, args...).ByPromise())
	if err != nil {
		b.Fatalf("%s: %v", js, err)
	}
	if into != nil {
		b.noError(got.Value.Unmarshal(into))
	}
}

// text is what the page shows.
func (b *tab) text() string {
	got, err := b.page.Timeout(patience).Eval(`() => document.body?.innerText ?? ''`)
	if err != nil {
		return err.Error()
	}
	return got.Value.String()
}

// hit presses keys by their names, one after the other.
func (b *tab) hit(names ...string) {
	b.Helper()
	for _, name := range names {
		b.noError(b.page.Keyboard.Type(keyOf(name)))
	}
}

// keyOf is a key by the name that pages know it by.
func keyOf(name string) input.Key {
	named := map[string]input.Key{
		"Tab": input.Tab, "Enter": input.Enter, "Escape": input.Escape, "Home": input.Home, "End": input.End,
		"ArrowDown": input.ArrowDown, "ArrowUp": input.ArrowUp, "ArrowLeft": input.ArrowLeft, "ArrowRight": input.ArrowRight,
	}
	if key, ok := named[name]; ok {
		return key
	}
	return input.Key([]rune(name)[0])
}

func matches(expression, text string) bool { return regexp.MustCompile(expression).MatchString(text) }
