package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// Bounds of what a reader can keep in mind of one type.
const (
	maxMethods   = 60 // of a type
	maxInterface = 12 // of an interface, those of interfaces in it apart
)

// overLimit are the types that do not hold to the limits, and how many methods they
// may have: as many as they have. The list only becomes shorter, and its numbers
// smaller.
var overLimit = map[string]int{
	"runtime/loop.run": 155, // its groups need each other
}

// sizes are the methods of the types of a module, by "package.Type".
type sizes struct {
	methods    map[string]map[string]bool // one that is declared for each system is one
	interfaces map[string]int
}

// TestLimits keeps types to a size that a reader can have in mind.
func TestLimits(t *testing.T) {
	t.Parallel()
	all := sizes{map[string]map[string]bool{}, map[string]int{}}
	eachSource(t, rooms, func(name string, _ *token.FileSet, file *ast.File) { all.add(path.Dir(name), file) })
	if len(all.methods) < 200 || len(all.interfaces) < 20 {
		t.Fatalf("only %d types and %d interfaces; the test looks in the wrong place", len(all.methods), len(all.interfaces))
	}
	for _, problem := range all.problems(overLimit) {
		t.Error(problem)
	}
}

// add counts what a file declares.
func (s sizes) add(pkg string, file *ast.File) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				continue
			}
			name := pkg + "." + receiver(decl.Recv.List[0].Type)
			if s.methods[name] == nil {
				s.methods[name] = map[string]bool{}
			}
			s.methods[name][decl.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok {
					s.addInterface(pkg+"."+typ.Name.Name, typ.Type)
				}
			}
		}
	}
}

func (s sizes) addInterface(name string, typ ast.Expr) {
	declared, ok := typ.(*ast.InterfaceType)
	if !ok {
		return
	}
	s.interfaces[name] = 0
	for _, method := range declared.Methods.List {
		s.interfaces[name] += len(method.Names) // none: another interface
	}
}

// receiver is the name of a type that a method is declared for.
func receiver(typ ast.Expr) string {
	switch typ := typ.(type) {
	case *ast.StarExpr:
		return receiver(typ.X)
	case *ast.IndexExpr: // a type parameter
		return receiver(typ.X)
	case *ast.IndexListExpr:
		return receiver(typ.X)
	case *ast.Ident:
		return typ.Name
	}
	return fmt.Sprintf("%T", typ)
}

// problems are the types that are larger than they may be, and the entries of the
// list that could be smaller.
func (s sizes) problems(over map[string]int) (problems []string) {
	counts, limits := maps.Clone(s.interfaces), map[string]int{}
	for name := range s.interfaces {
		limits[name] = maxInterface
	}
	for name, methods := range s.methods {
		counts[name], limits[name] = len(methods), maxMethods
	}
	for name, listed := range over {
		if _, known := limits[name]; !known {
			problems = append(problems, name+" is listed and has no methods any more: remove it from the list")
			continue
		}
		if counts[name] <= limits[name] {
			problems = append(problems, fmt.Sprintf("%s holds to the limit with %d methods: remove it from the list", name, counts[name]))
		} else if counts[name] < listed {
			problems = append(problems, fmt.Sprintf("%s has %d methods and is listed with %d: lower the number", name, counts[name], listed))
		}
		limits[name] = max(limits[name], listed)
	}
	for name, count := range counts {
		if count > limits[name] {
			problems = append(problems, fmt.Sprintf("%s has %d methods, and may have %d: give some of them a type of their own", name, count, limits[name]))
		}
	}
	slices.Sort(problems)
	return problems
}

// TestLimitsCanFail shows that the limits find what is too large, and what could be
// taken off the list.
func TestLimitsCanFail(t *testing.T) {
	t.Parallel()
	source := "package p\ntype Large[T any] struct{}\ntype Wide interface { error; " + declared("M%d()\n", maxInterface+1) + "}\ntype Both interface { Wide; N() }\n" +
		declared("func (l *Large[T]) M%d() {}\n", maxMethods+2)
	other := "package p\nfunc (Large[T]) M0() {}\nfunc (Small) M() {}\n" // the same method for another system
	all := sizes{map[string]map[string]bool{}, map[string]int{}}
	for _, text := range []string{source, other} {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		all.add("a/p", file)
	}
	for _, tt := range []struct {
		over map[string]int
		want []string
	}{
		{nil, []string{"a/p.Large has 62", "a/p.Wide has 13"}},
		{map[string]int{"a/p.Large": 62, "a/p.Wide": 13}, nil},
		{map[string]int{"a/p.Large": 61, "a/p.Wide": 14}, []string{"a/p.Large has 62", "a/p.Wide has 13 methods and is listed with 14"}},
		{map[string]int{"a/p.Large": 62, "a/p.Wide": 13, "a/p.Small": 1, "a/p.Gone": 70}, []string{"a/p.Gone is listed", "a/p.Small holds"}},
	} {
		got := all.problems(tt.over)
		same := slices.EqualFunc(got, tt.want, strings.HasPrefix)
		if !same {
			t.Errorf("with %v: %q, want %q", tt.over, got, tt.want)
		}
	}
}

// declared repeats a declaration with numbers from 0.
func declared(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}
