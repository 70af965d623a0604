package main_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// retired are words that names do not have any more, with the word of the field
// that names the same. A word is a part of a name as capitals divide it; several
// follow each other.
var retired = map[string]string{
	"crew":        "worker pool",
	"deaths":      "exit watcher",
	"carried on":  "continued",
	"carries on":  "continues",
	"carry on":    "continue",
	"gist":        "meta cache",
	"glances":     "file cache",
	"hub":         "notifier",
	"in line":     "queued",
	"line keeper": "queue lease",
	"memo":        "cache",
	"ring":        "keyring",
	"ruling":      "decision",
	"tally":       "commit counter",
	"turnstile":   "fair lock",
	"vantage":     "data version",
}

// TestWords keeps names to the words of the field.
func TestWords(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	names := 0
	eachSource(t, rooms, func(_ string, positions *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if name, ok := n.(*ast.Ident); ok {
				names++
				for _, problem := range retiredIn(name.Name) {
					t.Errorf("%s: %s", positions.Position(name.Pos()), problem)
				}
			}
			return true
		})
	})
	if names < 10_000 {
		t.Fatalf("only %d names; the test looks in the wrong place", names)
	}
}

// retiredText is said by no text for models, people or readers any more:
// a thread has a successor, which continues it.
var retiredText = regexp.MustCompile(`(?i)\bcarr(y|ies|ied|ying)(\s+[\w']+){0,3}\s+on\b`)

// TestWordsOfTexts keeps comments, texts of the code and documents to the words
// of the field.
func TestWordsOfTexts(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	texts := 0
	check := func(where, text string) {
		texts++
		if found := retiredText.FindString(text); found != "" {
			t.Errorf("%s: %q; the house says: continues, successor", where, found)
		}
	}
	eachSource(t, rooms, func(path string, positions *token.FileSet, file *ast.File) {
		for _, group := range file.Comments {
			check(positions.Position(group.Pos()).String(), group.Text())
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				check(positions.Position(literal.Pos()).String(), literal.Value)
			}
			return true
		})
	})
	eachDocument(t, check)
	if texts < 10_000 {
		t.Fatalf("only %d texts; the test looks in the wrong place", texts)
	}
	for text, want := range map[string]bool{
		"the thread that carries the asked one on": true, "who carries that on, while": true, "carry it out": false, "carries a part of it": false,
	} {
		if retiredText.MatchString(text) != want {
			t.Errorf("%q: found is not %v", text, want)
		}
	}
}

// clauses are sentences, or parts of them up to a colon or semicolon. One is relative that has a
// clause in the place of its subject and has to be read twice: "What is cut says so." A
// question is none, and neither is the beginning of a list.
var (
	clauses  = regexp.MustCompile(`[^.;:!?]+[.;:!?]*`)
	relative = regexp.MustCompile(`^(Who|What|Whoever|Whatever) .*[^:?]$`)
)

// titled matches the lines of a document that name what is below them, or within a command.
var titled = regexp.MustCompile(`^(\s*#|title:|description:)`)

// relativesIn returns the relative sentences of a text, whose lines are wrapped.
func relativesIn(text string) (found []string) {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		for _, s := range clauses.FindAllString(strings.Join(strings.Fields(paragraph), " "), -1) {
			if s = strings.TrimSpace(s); relative.MatchString(s) {
				found = append(found, s)
			}
		}
	}
	return found
}

// TestSubjects keeps comments and guides to sentences that begin with their subject.
func TestSubjects(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	texts := 0
	check := func(where, text string) {
		texts++
		for _, sentence := range relativesIn(text) {
			if sentence == "What is the kind of a difference." {
				continue // What is its name
			}
			t.Errorf("%s: %q begins with a clause; say what its subject is", where, sentence)
		}
	}
	eachSource(t, rooms, func(_ string, positions *token.FileSet, file *ast.File) {
		for _, group := range file.Comments {
			check(positions.Position(group.Pos()).String(), group.Text())
		}
	})
	eachDocument(t, func(path, text string) {
		if isTemplate := strings.Contains(path, "directive") || strings.Contains(path, "skeleton"); isTemplate {
			return // they ask a model for what they list
		}
		for line := range strings.SplitSeq(text, "\n") {
			if !titled.MatchString(line) {
				check(path, line)
			}
		}
	})
	if texts < 10_000 {
		t.Fatalf("only %d texts; the test looks in the wrong place", texts)
	}
}

// TestSubjectsCanFail shows which sentences are found.
func TestSubjectsCanFail(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"write shows bytes. What is not whole yet\nis kept for the next.": 1,
		"Whoever is slow is told less often, and misses\nnothing.":        1,
		"What has ended is resumed. Who waits is told.":                   2,
		"What matters most: {input:focus}.":                               0,
		"What is it? A thread.":                                           0,
		"what a turn took and cost":                                       0,
		"A thread says what it does.":                                     0,
	} {
		if found := relativesIn(text); len(found) != want {
			t.Errorf("%q: found %q, want %d", text, found, want)
		}
	}
}

// eachDocument visits the Markdown of the project.
func eachDocument(t *testing.T, visit func(path, text string)) {
	t.Helper()
	for _, room := range append(slices.Clone(rooms), "README.md", "AGENTS.md") {
		err := filepath.WalkDir(filepath.Join("..", "..", room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
				return err
			}
			text, err := os.ReadFile(path)
			visit(path, string(text))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// boundary is where one word of a name ends and the next begins.
var boundary = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])|_`)

// retiredIn says which retired words a name has.
func retiredIn(name string) (problems []string) {
	words := " " + strings.ToLower(boundary.ReplaceAllString(name, "$1$3 $2$4")) + " "
	for word, instead := range retired {
		if strings.Contains(words, " "+word+" ") {
			problems = append(problems, fmt.Sprintf("%s has the word %q; the house says %q", name, word, instead))
		}
	}
	return problems
}

// TestWordsCanFail shows that words are found in names, and only as words.
func TestWordsCanFail(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{
		"crew": 1, "newCrew": 1, "QueueKeeper": 0, "ownLineKeeper": 1, "InLine": 1, "childInLine": 1, "carriesOn": 1, "HTTPHub": 1, "crew_hub": 2, "Record": 0,
		"inline": 0, "inLines": 0, "String": 0, "github": 0, "Memory": 0, "registry": 0, "keyring": 0,
	} {
		if got := retiredIn(name); len(got) != want {
			t.Errorf("%s: %q, want %d", name, got, want)
		}
	}
}
