package validate

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/builtin/file"
	"github.com/rye-mcp/rye-mcp/tools/executor"
)

// FuzzItems validates any bytes as an item of any kind: nothing panics, and each
// finding has a place in the file, a code and advice.
func FuzzItems(f *testing.F) {
	files, err := filepath.Glob("testdata/findings/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		fixture, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, one := range fixture.Files {
			f.Add(filepath.Ext(one.Name), one.Data)
		}
	}
	// The seeds are those of the readers of package parse.
	seeds, err := filepath.Glob("../../spaces/parse/testdata/workspace/*/*/*")
	if err != nil || len(seeds) == 0 {
		f.Fatal(seeds, err)
	}
	for _, seed := range seeds {
		data, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(filepath.Ext(seed), data)
	}
	w := fuzzWorld()
	f.Fuzz(func(t *testing.T, ext string, content []byte) {
		for _, kind := range item.Kinds() {
			found := &resolve.Found{Entry: resolve.Entry{Kind: kind, ID: "x", Space: item.Project, Path: "x" + ext, Ext: ext}, Content: content}
			l := &list{about: Finding{Type: kind, Item: "x", Path: found.Path}}
			var err error
			switch kind {
			case item.Directive:
				err = validateDirective(t.Context(), l, w, found)
			case item.Tool:
				err = validateTool(l, w, found)
			case item.Knowledge:
				err = validateKnowledge(l, w, found)
			}
			if err != nil && len(l.found) > 0 {
				t.Errorf("found %v in what cannot be read: %v", l.found, err)
			}
			checkFindings(t, l.found, bytes.Count(content, []byte("\n"))+1)
		}
	})
}

func checkFindings(t *testing.T, found []Finding, lines int) {
	t.Helper()
	for _, f := range found {
		if f.Line < 0 || f.Line > lines || f.Code == "" || f.Message == "" || f.Try == "" || strings.Contains(f.Message, "%!") {
			t.Errorf("%+v in a file of %d lines", f, lines)
		}
	}
}

// fuzzWorld has the items and settings that are shipped.
func fuzzWorld() *world {
	roots := resolve.Roots{System: system.FS()}
	settings := config.New(roots).Read()
	env := map[string]string{"ANTHROPIC_API_KEY": "key"}
	registry, err := executor.New(file.Tools(file.Deps{})...)
	if err != nil {
		panic(err)
	}
	box := opening.Toolbox{
		Resolver: resolve.New(roots), Executor: registry, Actions: action.New(action.Deps{Threads: operation.Actions{Table: operation.All()}}),
	}
	v := &Validator{
		Palette:  box.Palette,
		Resolver: resolve.New(roots), Config: settings,
		Providers: provider.NewSource(func(name string) string { return env[name] }).With(settings),
		Trust:     &trust.Gate{Roots: roots, Shipped: system.Has, Settings: settings.Integrity},
		Runs:      func(*resolve.Found) ([]string, error) { return nil, nil },
		Env:       func(string) bool { return false },
	}
	_, s := v.settings()
	return v.look(s)
}
