package system_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
)

func newResolver() *resolve.Resolver { return resolve.New(resolve.Roots{System: system.FS()}) }

func TestDirectives(t *testing.T) {
	t.Parallel()
	r := newResolver()
	entries, err := r.All(item.Directive)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d directives, %v", len(entries), err)
	}
	for _, e := range entries {
		found, err := r.Find(item.Directive, e.ID)
		if err != nil {
			t.Error(err)
			continue
		}
		doc, err := found.Directive()
		if err != nil {
			t.Error(err)
			continue
		}
		if doc.Name != path.Base(e.ID) || doc.Category != path.Dir(e.ID) || doc.Description == "" || doc.Version == "" {
			t.Errorf("%s: name %q, category %q, version %q, description %q", e.ID, doc.Name, doc.Category, doc.Version, doc.Description)
		}
		for _, id := range slices.Concat(doc.Context.System, doc.Context.Before, doc.Context.After) {
			if _, err := r.Find(item.Knowledge, id); err != nil {
				t.Errorf("%s: its context: %v", e.ID, err)
			}
		}
		if doc.Extends != "" {
			if _, err := r.Find(item.Directive, doc.Extends); err != nil {
				t.Errorf("%s: it extends: %v", e.ID, err)
			}
		}
		checkPlaceholders(t, e.ID, doc)
	}
}

// checkPlaceholders finds placeholders of inputs that are not declared.
func checkPlaceholders(t *testing.T, id string, doc *item.DirectiveDoc) {
	t.Helper()
	given := make(map[string]any, len(doc.Inputs))
	for _, in := range doc.Inputs {
		given[in.Name] = "x"
	}
	if left := inputs.Interpolate(doc.Body, given, nil); strings.Contains(left, "{input:") {
		t.Errorf("%s: a placeholder stays in\n%s", id, left)
	}
}

func TestKnowledge(t *testing.T) {
	t.Parallel()
	r := newResolver()
	entries, err := r.All(item.Knowledge)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for _, e := range entries {
		found, err := r.Find(item.Knowledge, e.ID)
		if err != nil {
			t.Error(err)
			continue
		}
		doc, err := found.Knowledge()
		if err != nil {
			t.Error(err)
			continue
		}
		if doc.Name != path.Base(e.ID) || doc.Category != path.Dir(e.ID) || doc.Title == "" || doc.Description == "" || doc.Body == "" {
			t.Errorf("%s: %+v", e.ID, doc)
		}
	}
}

// The demonstration must fit into itself: a parent pays for its children and
// holds what they may do.
func TestDemo(t *testing.T) {
	t.Parallel()
	r := newResolver()
	parent, worker := directive(t, r, "rye/demo/orchestrate"), directive(t, r, "rye/demo/worker")
	if got := 3 * worker.Limits["spend"]; got > parent.Limits["spend"] {
		t.Errorf("three workers reserve %g of %g", got, parent.Limits["spend"])
	}
	if parent.Limits["spawns"] < 3 || parent.Limits["depth"] < 1 {
		t.Errorf("limits %v do not allow three children", parent.Limits)
	}
	for _, c := range append([]string{"rye.execute.directive.rye.demo.worker", "rye.execute.tool.rye.agent.threads.orchestrator"},
		worker.Permissions.Capabilities...) {
		if !slices.Contains(parent.Permissions.Capabilities, c) {
			t.Errorf("the parent does not hold %s", c)
		}
	}
	values, _, err := inputs.Validate(parent, nil)
	if err != nil || values["topic"] != "three short poems" {
		t.Errorf("inputs %v, %v", values, err)
	}
	if _, _, err := inputs.Validate(worker, map[string]any{"part": "one"}); err != nil {
		t.Error(err)
	}
}

func directive(t *testing.T, r *resolve.Resolver, id string) *item.DirectiveDoc {
	t.Helper()
	found, err := r.Find(item.Directive, id)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := found.Directive()
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// The example that teaches what a directive looks like must be one.
func TestExampleDirective(t *testing.T) {
	t.Parallel()
	src, err := fs.ReadFile(system.FS(), "knowledge/rye/core/directives.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(src), "````markdown\n")
	example, _, found := strings.Cut(rest, "````\n")
	if !found {
		t.Fatal("no example was found")
	}
	space := t.TempDir()
	if err := os.MkdirAll(space+"/.ai/directives", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(space+"/.ai/directives/summarise.md", []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	doc := directive(t, resolve.New(resolve.Roots{Project: space}), "summarise")
	if len(doc.Inputs) != 2 || len(doc.Outputs) != 1 || doc.Limits["turns"] != 6 {
		t.Errorf("the example was read as %+v", doc)
	}
	checkPlaceholders(t, "the example", doc)
}

// Every error code of tools/tool is explained, and no other. The codes are read
// from the source, since this room may not import that one.
func TestErrorCodesAreExplained(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../tools/tool/fault.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := fs.ReadFile(system.FS(), "knowledge/rye/core/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := submatches(regexp.MustCompile(`Code += "([a-z_]+)"`), source)
	explained := submatches(regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|"), text)
	if len(codes) == 0 || !slices.Equal(codes, explained) {
		t.Errorf("codes     %v\nexplained %v", codes, explained)
	}
}

// No code stands in the source but by its name in the list: an error with another
// would be one that nobody explains.
func TestErrorCodesAreTheListed(t *testing.T) {
	t.Parallel()
	literal := regexp.MustCompile(`(?:tool\.)?Faultf\(\s*"|tool\.Code\("|Fault\{[^}]*Code:\s*"`)
	files := 0
	for _, room := range []string{"cmd", "mcp", "orchestrator", "runtime", "tools", "spaces"} {
		err := filepath.WalkDir("../../"+room, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			source, err := os.ReadFile(path)
			if found := literal.Find(source); found != nil {
				t.Errorf("%s: %s", path, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Errorf("only %d files were read", files)
	}
}

// The items that knowledge tells models to call must be there; the commands that it tells
// people to run are looked at beside the commands.
func TestKnowledgeNamesWhatExists(t *testing.T) {
	t.Parallel()
	entries, err := newResolver().All(item.Knowledge)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		found, err := newResolver().Find(item.Knowledge, e.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range submatches(regexp.MustCompile(`(?m)(?:^|[^/\w])rye/([a-z-]+(?:/[a-z_-]+)*)`), found.Content) {
			if _, err := newResolver().FindAny("rye/" + id); err != nil && !isCategory("rye/"+id) && "rye/"+id != decides {
				t.Errorf("%s: %v", e.ID, err)
			}
		}
	}
}

// decides is the action by which hooks decide, which is no item.
const decides = "rye/agent/threads/internal/control"

func isCategory(id string) bool {
	return slices.ContainsFunc(item.Kinds(), func(k item.Kind) bool {
		info, err := fs.Stat(system.FS(), path.Join(k.Dir(), id))
		return err == nil && info.IsDir()
	})
}

func submatches(re *regexp.Regexp, src []byte) []string {
	var all []string
	for _, m := range re.FindAllSubmatch(src, -1) {
		all = append(all, string(m[1]))
	}
	slices.Sort(all)
	return all
}
