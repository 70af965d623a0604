package page

import (
	"slices"
	"strings"
	"testing"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/js"
)

// browserNames are the names that modules use and browsers have.
var browserNames = strings.Fields(`
	AbortController Array Blob Boolean CSS Date Error Event Headers Highlight Infinity Intl JSON KeyboardEvent HTMLElement Map Math MutationObserver NaN Node NodeFilter Number
	Object Promise RangeError Range RegExp ResizeObserver Response Set String SyntaxError Symbol TextDecoder TextEncoder TypeError URL URLSearchParams Uint32Array Uint8Array WeakMap
	addEventListener cancelAnimationFrame clearInterval clearTimeout console crypto decodeURIComponent document encodeURIComponent fetch getComputedStyle getSelection
	globalThis history innerHeight innerWidth isNaN location matchMedia navigator parseFloat parseInt performance queueMicrotask removeEventListener
	requestAnimationFrame sessionStorage localStorage setInterval setTimeout structuredClone undefined arguments window`)

// A name that nobody declares would be found out when somebody opens the view that uses it;
// one that is imported and not used is left over.
func TestModuleNames(t *testing.T) {
	t.Parallel()
	for name, m := range readModules(t) {
		for _, problem := range nameProblems(m) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

func TestModuleNameRules(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`export function a(x) { return [...gone(x)] }`:                               "gone is declared nowhere",
		`import {b} from "./b.js"; export function a() { return 1 }`:                 "b is imported and not used",
		`import {b} from "./b.js"; const c = 1; export function a() { return b(c) }`: "",
	} {
		ast, err := js.Parse(parse.NewInputString(source), js.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := &module{name: "x.js", ast: ast, imports: map[string][]string{}}
		m.read()
		if got := strings.Join(nameProblems(m), "; "); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}

func nameProblems(m *module) (problems []string) {
	var imported, free []string
	for _, names := range m.imports {
		imported = append(imported, names...)
	}
	for _, v := range m.ast.Undeclared {
		if v.Uses > 0 {
			free = append(free, string(v.Data))
		}
	}
	for _, name := range free {
		if !slices.Contains(imported, name) && !slices.Contains(browserNames, name) {
			problems = append(problems, name+" is declared nowhere")
		}
	}
	for _, name := range imported {
		if !slices.Contains(free, name) {
			problems = append(problems, name+" is imported and not used")
		}
	}
	return problems
}
