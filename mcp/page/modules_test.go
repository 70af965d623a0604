package page

import (
	"bytes"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/js"
)

// maxStatic bounds the files of the page together, in bytes: the page may add half a
// megabyte to the program, and this is without its code.
const maxStatic = 316 << 10

// markup turns text into elements or code. Content policy and Trusted Types forbid most of
// it in browsers; a module that tried would be broken there.
var markup = []string{
	"innerHTML", "outerHTML", "insertAdjacentHTML", "setHTML", "setHTMLUnsafe", "parseHTMLUnsafe", "createContextualFragment",
	"DOMParser", "srcdoc", "document.write", "document.writeln", "eval", "Function", "importScripts", "cssText",
}

// surroundings are what only the modules around the others touch: the MCP App has them not.
var surroundings = []string{
	"fetch", "XMLHttpRequest", "WebSocket", "EventSource", "sendBeacon", "sessionStorage", "localStorage", "indexedDB", "cookie",
	"location", "history",
}

// module is what a file says to the others.
type module struct {
	name     string
	ast      *js.AST
	exports  []string
	declared []string
	imports  map[string][]string // names by file
}

// Modules are put together into one script (mcp/app), so their top-level names are their own, imports
// rename nothing, and only app.js runs anything when it is loaded.
func TestModules(t *testing.T) {
	t.Parallel()
	modules := readModules(t)
	if len(modules) < 10 {
		t.Fatalf("%d modules", len(modules))
	}
	owner := map[string]string{}
	for name, m := range modules {
		for _, top := range m.declared {
			if other := owner[top]; other != "" {
				t.Errorf("%s: %s is declared by %s too", name, top, other)
			}
			owner[top] = name
		}
		for file, names := range m.imports {
			other := modules[file]
			if other == nil {
				t.Errorf("%s imports %s, which there is not", name, file)
				continue
			}
			for _, wanted := range names {
				if !slices.Contains(other.exports, wanted) {
					t.Errorf("%s imports %s from %s, which does not export it", name, wanted, file)
				}
			}
		}
		for word := range words(m.ast) {
			if slices.Contains(markup, word) {
				t.Errorf("%s: %s", name, word)
			}
			if name != "app.js" && name != "api.js" && slices.Contains(surroundings, word) {
				t.Errorf("%s: %s stands in app.js and api.js only", name, word)
			}
		}
	}
}

// The tests of the rules see what they forbid.
func TestModuleRules(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`el.innerHTML = x`: "innerHTML", `el["outerHTML"] = x`: "outerHTML", `document.write(x)`: "document.write", `eval(x)`: "eval",
		`new Function(x)`: "Function", `h("a", {srcdoc: x})`: "srcdoc", `globalThis.fetch(x)`: "fetch", "f(`cookie`)": "cookie",
		`const {location} = window`: "location",
	} {
		ast, err := js.Parse(parse.NewInputString(source), js.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !words(ast)[want] {
			t.Errorf("%s: %s is not seen, but %v", source, want, words(ast))
		}
	}
	for source, want := range map[string]string{
		`import {a as b} from "./x.js"`: "renames", `import a from "./x.js"`: "default", `import * as a from "./x.js"`: "renames", `import {a} from "x"`: "from",
		`export default function a() {}`: "default", `export {a}; const a = 1`: "declaration", `start()`: "runs", `import("./x.js")`: "runs",
	} {
		ast, err := js.Parse(parse.NewInputString(source), js.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := &module{name: "x.js", ast: ast, imports: map[string][]string{}}
		if problems := strings.Join(m.read(), "; "); !strings.Contains(problems, want) {
			t.Errorf("%s: %q", source, problems)
		}
	}
}

// Markup and styles of the page hold to its content policy, lead nowhere else, and the files
// are small.
func TestStatic(t *testing.T) {
	t.Parallel()
	total := 0
	elsewhere := regexp.MustCompile(`(https?:)?//[A-Za-z0-9-]+\.[a-z]|@import|\burl\(["']?[^#"']`)
	inline := regexp.MustCompile(`(?i)\son[a-z]+\s*=|\sstyle\s*=|<style|<script(?: [^>]*)?>[^<]|javascript:|<base|<form|<iframe`)
	eachFile(t, func(name string, content []byte) {
		total += len(content)
		text := strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", "")
		if found := elsewhere.FindString(text); found != "" {
			t.Errorf("%s leads elsewhere: %s", name, found)
		}
		if ext := path.Ext(name); ext == ".html" || ext == ".svg" {
			if found := inline.FindString(text); found != "" {
				t.Errorf("%s: %s", name, found)
			}
		}
	})
	if total > maxStatic {
		t.Errorf("the page is %d bytes, at most %d", total, maxStatic)
	}
}

func eachFile(t *testing.T, do func(name string, content []byte)) {
	t.Helper()
	entries, err := fs.ReadDir(files, "static")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := files.ReadFile("static/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		do(entry.Name(), content)
	}
}

func readModules(t *testing.T) map[string]*module {
	t.Helper()
	modules := map[string]*module{}
	eachFile(t, func(name string, content []byte) {
		if path.Ext(name) != ".js" {
			return
		}
		ast, err := js.Parse(parse.NewInputBytes(content), js.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		m := &module{name: name, ast: ast, imports: map[string][]string{}}
		for _, problem := range m.read() {
			t.Errorf("%s: %s", name, problem)
		}
		modules[name] = m
	})
	return modules
}

// read takes in the statements of a module, and says which break the rules.
func (m *module) read() (problems []string) {
	for _, statement := range m.ast.List {
		switch s := statement.(type) {
		case *js.ImportStmt:
			problems = append(problems, m.addImport(s)...)
		case *js.ExportStmt:
			switch {
			case s.Default:
				problems = append(problems, "a default export: names only")
			case s.Decl == nil:
				problems = append(problems, "an export without its declaration")
			default:
				names := declared(s.Decl)
				m.exports, m.declared = append(m.exports, names...), append(m.declared, names...)
			}
		case *js.VarDecl, *js.FuncDecl, *js.ClassDecl:
			m.declared = append(m.declared, declared(s)...)
		case *js.EmptyStmt, *js.Comment:
		default:
			if m.name != "app.js" {
				problems = append(problems, "it runs something when it is loaded: "+s.String())
			}
		}
	}
	return problems
}

var neighbour = regexp.MustCompile(`^["']\./([a-z]+\.js)["']$`)

func (m *module) addImport(s *js.ImportStmt) (problems []string) {
	from := neighbour.FindSubmatch(s.Module)
	if from == nil {
		return []string{"an import from " + string(s.Module)}
	}
	if s.Default != nil || len(s.List) == 0 {
		problems = append(problems, "an import of a default, or of nothing")
	}
	file := string(from[1])
	for _, one := range s.List {
		if one.Name != nil && !bytes.Equal(one.Name, one.Binding) {
			problems = append(problems, "an import that renames "+string(one.Name))
		}
		m.imports[file] = append(m.imports[file], string(one.Binding))
	}
	return problems
}

// declared are the names that a declaration makes.
func declared(n any) (names []string) {
	switch d := n.(type) {
	case *js.FuncDecl:
		names = append(names, string(d.Name.Data))
	case *js.ClassDecl:
		names = append(names, string(d.Name.Data))
	case *js.VarDecl:
		for _, element := range d.List {
			if v, ok := element.Binding.(*js.Var); ok {
				names = append(names, string(v.Data))
			} else {
				names = append(names, "a pattern: "+element.Binding.String())
			}
		}
	}
	return names
}

// words are the identifiers, the names of members (alone, and with what they are of) and the texts of a module.
func words(ast *js.AST) map[string]bool {
	w := wordsOf{}
	js.Walk(w, ast)
	return w
}

type wordsOf map[string]bool

func (w wordsOf) Enter(n js.INode) js.IVisitor {
	switch n := n.(type) {
	case *js.Var:
		w[string(n.Data)] = true
	case *js.LiteralExpr:
		w[strings.Trim(string(n.Data), "\"'`")] = true
	case *js.TemplateExpr:
		w[strings.Trim(string(n.Tail), "`")] = true
	case *js.PropertyName:
		w[strings.Trim(string(n.Literal.Data), "\"'")] = true
	case *js.BindingObject:
		for _, item := range n.List {
			if item.Key != nil {
				w[string(item.Key.Literal.Data)] = true
			}
		}
	case *js.DotExpr:
		w[n.Y.String()] = true
		w[n.X.String()+"."+n.Y.String()] = true
	}
	return w
}

func (w wordsOf) Exit(js.INode) {}
