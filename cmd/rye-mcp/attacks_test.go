package main_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var updateAttacks = flag.Bool("attacks", false, "rewrite the table of attacks in the security guide")

// securityGuide ends with the table of attacks.
const securityGuide = "spaces/system/ai/knowledge/rye/core/security.md"

// attackTableHead is where the table begins.
const attackTableHead = "| test | attack | what happens |\n|---|---|---|\n"

// attack is a test of an attack: its comment is two sentences, what is tried and
// what comes of it.
type attack struct {
	name, tried, outcome string
}

// TestAttackTable keeps the table in the security guide true. Rewrite it with
//
//	go test ./cmd/rye-mcp -run '^TestAttackTable$' -attacks && go generate ./spaces/system
func TestAttackTable(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	guide := filepath.Join(root, filepath.FromSlash(securityGuide))
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := bytes.Cut(text, []byte(attackTableHead))
	if !found {
		t.Fatalf("%s has no line %q", securityGuide, attackTableHead)
	}
	want := slices.Concat(before, []byte(attackTableHead), attackRows(findAttacks(t, root)))
	if *updateAttacks {
		if err := os.WriteFile(guide, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(text, want) {
		t.Errorf("the table of attacks in %s is not that of the tests; run:\n"+
			"go test ./cmd/rye-mcp -run '^TestAttackTable$' -attacks && go generate ./spaces/system", securityGuide)
	}
}

func attackRows(attacks []attack) []byte {
	var rows bytes.Buffer
	for _, a := range attacks {
		cell := strings.NewReplacer("|", `\|`, "\n", " ").Replace
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", strings.TrimPrefix(a.name, "TestAttack"), cell(a.tried), cell(a.outcome))
	}
	return rows.Bytes()
}

// findAttacks reads the tests of all rooms, sorted by name.
func findAttacks(t *testing.T, root string) []attack {
	t.Helper()
	var attacks []attack
	for _, room := range rooms {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && isAttack(f.Name.Name) {
					attacks = append(attacks, readAttack(t, path, f))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(attacks, func(a, b attack) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.tried, b.tried)) })
	return attacks
}

func isAttack(name string) bool {
	rest, found := strings.CutPrefix(name, "TestAttack")
	return found && rest != "" && unicode.IsUpper(rune(rest[0])) && name != "TestAttackTable"
}

// readAttack takes the two sentences of a test's comment apart; the name of the
// test and a colon stand before them.
func readAttack(t *testing.T, path string, f *ast.FuncDecl) attack {
	t.Helper()
	name := f.Name.Name
	comment := strings.Join(strings.Fields(f.Doc.Text()), " ")
	_, text, named := strings.Cut(comment, name+":")
	tried, outcome, two := strings.Cut(strings.TrimSpace(text), ". ")
	if !named || !two || !strings.HasSuffix(outcome, ".") {
		t.Errorf("%s: the comment of %s must be \"%s: the attack. What happens.\"; it is %q", filepath.Base(path), name, name, comment)
	}
	return attack{name: name, tried: sentence(tried), outcome: sentence(strings.TrimSuffix(outcome, "."))}
}

// sentence begins with a capital letter.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
