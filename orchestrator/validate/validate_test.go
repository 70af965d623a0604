package validate_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/orchestrator/validate"
	"github.com/rye-mcp/rye-mcp/runtime/opening"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/system"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/builtin/file"
	"github.com/rye-mcp/rye-mcp/tools/builtin/shell"
	"github.com/rye-mcp/rye-mcp/tools/executor"
	"github.com/rye-mcp/rye-mcp/tools/executor/chain"
	"github.com/rye-mcp/rye-mcp/tools/executor/httpclient"
	"github.com/rye-mcp/rye-mcp/tools/executor/subprocess"
)

var update = flag.Bool("update", false, "rewrite golden files")

// scene is a project and a user in temporary folders.
type scene struct {
	t *testing.T
	*validate.Validator
	project, user string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, project: filepath.Join(t.TempDir(), "project"), user: filepath.Join(t.TempDir(), "user")}
	roots := resolve.Roots{Project: s.project, User: s.user, System: system.FS()}
	settings := config.New(roots).Read()
	env := map[string]string{"ANTHROPIC_API_KEY": "key"}
	unchecked := &trust.Gate{Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Off}, nil }, Shipped: system.Has}
	chains := &chain.Builder{Resolver: resolve.New(roots), Trust: unchecked}
	s.Validator = &validate.Validator{
		Resolver: resolve.New(roots), Config: config.AsWritten(roots).Read(),
		Providers: provider.NewSource(func(name string) string { return env[name] }).With(settings),
		Trust: &trust.Gate{
			Roots: roots, Shipped: system.Has, Settings: settings.Integrity,
			Own: func() (*sign.PublicKey, error) { return nil, nil }, //nolint:nilnil // the user has no key
		},
		Runs: func(found *resolve.Found) ([]string, error) {
			c, err := chains.Build(found)
			if err != nil {
				return nil, err
			}
			switch c.Primitive() {
			case chain.HTTPClient:
				return httpclient.New(nil, nil).Check(c)
			case chain.Subprocess:
				return (&subprocess.Primitive{}).Check(c)
			case chain.Builtin:
				_, err = resolve.New(resolve.Roots{System: system.FS()}).Find(item.Tool, found.ID)
			}
			return nil, err
		},
		Env: func(name string) bool { return name == "PROJECT_PATH" },
	}
	registry, err := executor.New(append(file.Tools(file.Deps{User: s.user}), shell.New(nil))...)
	if err != nil {
		t.Fatal(err)
	}
	s.Palette = opening.Toolbox{
		Resolver: s.Resolver, Executor: registry, Actions: action.New(action.Deps{Threads: operation.Actions{Table: operation.All()}}),
	}.Palette
	return s
}

// write adds a file below the .ai folder of the project, or of the user where
// name begins with user/.
func (s *scene) write(name string, data []byte) {
	s.t.Helper()
	dir := s.project
	if rest, ok := strings.CutPrefix(name, "user/"); ok {
		dir, name = s.user, rest
	}
	path := filepath.Join(dir, ".ai", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// all validates everything of some spaces.
func (s *scene) all(spaces ...item.Space) validate.Report {
	s.t.Helper()
	entries, err := s.Entries(spaces...)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := s.Items(s.t.Context(), entries, true)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// written is a report with the folders of the test left out.
func (s *scene) written(r validate.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s %s: %s\n", f.Level, f.Code, f.Place(), f.Message)
		if f.Try != "" {
			fmt.Fprintf(&b, "  Try: %s\n", f.Try)
		}
	}
	return strings.NewReplacer(filepath.Join(s.project, ".ai")+"/", "", s.project, "..", filepath.Join(s.user, ".ai"), "user").Replace(b.String())
}

// Every kind of finding, with message, file and line.
func TestFindings(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/findings/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[validate.Code]bool{}
	for _, file := range files {
		fixture, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := newScene(t)
		s.write("user/config/agent/agent.yaml", []byte("integrity: {mode: off}\n"))
		want := &fixture.Files[len(fixture.Files)-1]
		for _, f := range fixture.Files[:len(fixture.Files)-1] {
			s.write(f.Name, f.Data)
		}
		r := s.all(item.Project, item.User)
		got := s.written(r)
		for _, f := range r.Findings {
			seen[f.Code] = true
			if f.Try == "" || f.Message == "" || f.Path == "" {
				t.Errorf("%s: says too little: %+v", file, f)
			}
		}
		if errors := strings.Count("\n"+got, "\nerror "); errors != r.Errors || (errors == 0) != r.Success || r.Errors+r.Warnings != len(r.Findings) {
			t.Errorf("%s: counted as %+v", file, r)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if code := " " + name + " "; !strings.Contains(got, code) && !slices.Contains([]string{"clean", "signature_warn"}, name) {
			t.Errorf("%s: it is not found:\n%s", file, got)
		}
		if *update {
			want.Data = []byte(got)
			if err := os.WriteFile(file, txtar.Format(fixture), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got != string(want.Data) {
			t.Errorf("%s: got\n%swant\n%s", file, got, want.Data)
		}
	}
	for _, code := range codes(t) {
		if !seen[code] && code != validate.CodeUnreadable { // see TestUnreadable
			t.Errorf("no fixture shows %s", code)
		}
	}
}

// codes reads the codes there are from the source.
func codes(t *testing.T) []validate.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "finding.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []validate.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Code" {
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, validate.Code(text))
			}
		}
		return true
	})
	if len(all) < 40 {
		t.Fatalf("only %d codes found", len(all))
	}
	return all
}

// The shipped items are in order.
func TestShippedItemsAreClean(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	r := s.all(item.System)
	if got := s.written(r); got != "" || r.Items < 10 {
		t.Errorf("%d items, found\n%s", r.Items, got)
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("directives/x.md", []byte("x"))
	entries, err := s.Entries(item.Project)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	if err := os.Remove(entries[0].Path); err != nil {
		t.Fatal(err)
	}
	r, err := s.Items(t.Context(), entries, false)
	if err != nil || len(r.Findings) != 1 || r.Findings[0].Code != validate.CodeUnreadable || r.Success {
		t.Errorf("%+v, %v", r, err)
	}
}

// An unsigned item that another one needs is told where it is needed, unless it is
// validated itself.
func TestSignatureOfWhatIsNeeded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("user/knowledge/k.md", []byte("Words.\n"))
	s.write("directives/x.md", []byte("```xml\n<directive name=\"x\">\n<metadata><context>\n<system>k</system>\n</context></metadata>\n</directive>\n```\n"))
	if got := s.written(s.all(item.Project)); strings.Count(got, "directives/x.md:4: knowledge \"k\"") != 1 || strings.Count(got, "warning") != 2 {
		t.Errorf("alone:\n%s", got)
	}
	if got := s.written(s.all(item.Project, item.User)); strings.Count(got, "knowledge \"k\"") != 1 || strings.Count(got, "warning") != 2 {
		t.Errorf("with what it needs:\n%s", got)
	}
	s.write("user/directives/y.md", []byte("```xml\n<directive name=\"y\"></directive>\n```\n"))
	s.write("directives/x.md", []byte("```xml\n<directive name=\"x\">\n<metadata>\n<continuation_directive>y</continuation_directive>\n</metadata>\n</directive>\n```\n"))
	if got := s.written(s.all(item.Project)); strings.Count(got, "directives/x.md:4: directive \"y\"") != 1 || strings.Count(got, "warning") != 2 {
		t.Errorf("of a handoff:\n%s", got)
	}
}

// An item of the user that one of the project shadows is validated where it is
// named, and not among all: there it cannot be reached.
func TestShadowedByAnotherSpace(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("user/config/agent/agent.yaml", []byte("integrity: {mode: off}\n"))
	s.write("directives/x.md", []byte("```xml\n<directive name=\"x\"></directive>\n```\n"))
	s.write("user/directives/x.md", []byte("broken"))
	if r := s.all(item.Project, item.User); r.Items != 1 || !r.Success {
		t.Errorf("%+v", r)
	}
	entries, err := s.Resolver.All(item.Directive)
	if err != nil {
		t.Fatal(err)
	}
	entries = slices.DeleteFunc(entries, func(e resolve.Entry) bool { return e.Space != item.User })
	r, err := s.Items(t.Context(), entries, false)
	if err != nil || len(r.Findings) != 1 || r.Findings[0].Code != validate.CodeParse {
		t.Errorf("%+v, %v", r, err)
	}
}

// One item is told about errors of the settings, for nothing starts then, but not
// about warnings; a caller that names the file is told about both.
func TestSettingsOfOneItem(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("user/config/agent/agent.yaml", []byte("integrity: {mode: off}\nthreads: {wrong: 1}\n"))
	s.write("config/agent/resilience.yaml", []byte("limits: {turns: many}\n"))
	s.write("directives/x.md", []byte("```xml\n<directive name=\"x\"></directive>\n```\n"))
	entries, err := s.Entries(item.Project)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Items(t.Context(), entries, false)
	if err != nil || len(r.Findings) != 1 || r.Findings[0].Code != validate.CodeSettings {
		t.Errorf("%+v, %v", r, err)
	}
	entries = append(entries, resolve.Entry{Path: filepath.Join(s.user, ".ai", "config", "agent", "agent.yaml")})
	r, err = s.Items(t.Context(), entries, false)
	if err != nil || len(r.Findings) != 2 || r.Warnings != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A file that rye_sign would not sign is an error, also a settings file that this version
// does not read.
func TestSettingsFileByItself(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"a: 1\n":        "",
		"a: [\n":        "error settings config/other.yaml:1: yaml: line 1: ",
		"a: 1\n---\n{}": "error settings config/other.yaml: want one YAML document",
	} {
		s := newScene(t)
		s.write("config/other.yaml", []byte(content))
		r, err := s.Items(t.Context(), []resolve.Entry{{Space: item.Project, Path: filepath.Join(s.project, ".ai", "config", "other.yaml")}}, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.written(r); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%q: got %s", content, got)
		}
	}
}

// TestAttackManyCalls: the body of a directive is a megabyte of calls that never close, each of another tool. As many are looked at as a person would read, and each has its line.
func TestAttackManyCalls(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var body strings.Builder
	body.WriteString("```xml\n<directive name=\"x\" version=\"1.0.0\">\n</directive>\n```\n\n")
	for i := range 50_000 {
		fmt.Fprintf(&body, "rye_x%d(((\"{x%d}\n", i, i)
	}
	s.write("directives/x.md", []byte(body.String()))
	r := s.all(item.Project)
	if len(r.Findings) > 1_100 || len(r.Findings) < 1_000 {
		t.Errorf("%d findings", len(r.Findings))
	}
	for _, f := range r.Findings {
		if f.Line < 1 && f.Code != validate.CodeSignature {
			t.Errorf("%+v", f)
		}
	}
}
