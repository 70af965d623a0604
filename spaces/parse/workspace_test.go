package parse_test

import (
	"io/fs"
	"os"
	"path"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

// directiveWant is what a directive must be read as. The name is the last
// segment of the id.
type directiveWant struct {
	extends  string
	inputs   string // names and types, "!" behind what is required
	outputs  string
	limits   string
	perms    string // "-" when none are declared
	context  string
	model    string
	hooks    int
	hasProse bool // <success> or <failure>
	hasBody  bool
}

// TestWorkspace reads directives and knowledge in the shapes that real
// workspaces have.
func TestWorkspace(t *testing.T) {
	t.Parallel()
	checkWorkspace(t, os.DirFS("testdata/workspace"), ownDirectives(), ownKnowledge())
}

func ownDirectives() map[string]directiveWant {
	return map[string]directiveWant{
		"team/ground": {perms: "", context: "system team/manners, before team/terms, before team/style"},
		"team/review": {
			extends: "team/ground", model: "fast small-1 general", limits: "turns=5 tokens=2048 spend=0.25", hooks: 1,
			inputs: "path:string! depth:integer", outputs: "verdict: findings:array!", hasProse: true, hasBody: true,
			context: "after team/checklist, suppress team/terms",
			perms: "rye.fetch.knowledge.team.* rye.search.knowledge.team.* rye.execute.tool.rye.file-system.read " +
				"rye.execute.directive.team.ground rye.execute.tool.rye.agent.threads.orchestrator risk:elevated",
		},
		"jobs/everything": {model: "high", perms: "rye.* risk:unrestricted", outputs: "report:string! path:", hasBody: true},
	}
}

func ownKnowledge() map[string]knowledgeWant {
	return map[string]knowledgeWant{
		"notes/Terms.md":   {"Terms", "Terms we use", "words team"},
		"notes/front.md":   {"front-matter", "Front matter", "one two"},
		"notes/plain.md":   {"plain", "Just a note", ""},
		"notes/entry.yaml": {"entry", "YAML entry", "a b"},
	}
}

type knowledgeWant struct {
	name, title, tags string
}

// checkWorkspace reads every directive and knowledge file of a .ai folder and
// compares it with what is wanted; files and wants must match one to one.
func checkWorkspace(t *testing.T, ai fs.FS, directives map[string]directiveWant, knowledge map[string]knowledgeWant) {
	t.Helper()
	for file, src := range filesBelow(t, ai, "directives") {
		id := strings.TrimSuffix(file, ".md")
		want, ok := directives[id]
		if !ok {
			t.Errorf("%s: nothing is said about this directive; say it", file)
			continue
		}
		delete(directives, id)
		doc, err := parse.Directive(file, src)
		if err != nil {
			t.Errorf("it must load: %v", err)
			continue
		}
		if doc.Name != path.Base(id) || doc.Version == "" || doc.Description == "" {
			t.Errorf("%s: name %q, version %q, description %q", file, doc.Name, doc.Version, doc.Description)
		}
		if names := doc.UnknownNames(id); len(names) > 0 {
			t.Errorf("%s: names that are not known: %v", file, names)
		}
		if got := summary(doc); got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", file, got, want)
		}
	}
	for id := range directives {
		t.Errorf("directive %s is wanted but not there", id)
	}
	for file, src := range filesBelow(t, ai, "knowledge") {
		doc, err := parse.Knowledge(file, src)
		if err != nil {
			t.Errorf("it must load: %v", err)
			continue
		}
		if got := (knowledgeWant{doc.Name, doc.Title, strings.Join(doc.Tags, " ")}); got != knowledge[file] {
			t.Errorf("%s: got %+v, want %+v", file, got, knowledge[file])
		}
		if doc.Body == "" || strings.Contains(doc.Body, "rye:signed:") {
			t.Errorf("%s: the body is %q", file, doc.Body)
		}
		delete(knowledge, file)
	}
	for file := range knowledge {
		t.Errorf("knowledge %s is wanted but not there", file)
	}
}

func filesBelow(t *testing.T, ai fs.FS, dir string) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	err := fs.WalkDir(ai, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		src, err := fs.ReadFile(ai, name)
		files[strings.TrimPrefix(name, dir+"/")] = src
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("reading %s: %d files, %v", dir, len(files), err)
	}
	return files
}

func summary(doc *item.DirectiveDoc) directiveWant {
	w := directiveWant{
		extends:  doc.Extends,
		hooks:    len(doc.Hooks),
		hasProse: doc.Success != "" || doc.Failure != "",
		hasBody:  doc.Body != "",
		model:    strings.TrimSpace(strings.Join([]string{doc.Model.Tier, doc.Model.ID, doc.Model.Fallback}, " ")),
	}
	var inputs, outputs, limits, context []string
	for _, in := range doc.Inputs {
		inputs = append(inputs, in.Name+":"+in.Type+mark(in.Required))
	}
	for _, out := range doc.Outputs {
		outputs = append(outputs, out.Name+":"+out.Type+mark(out.Required))
	}
	for _, name := range item.LimitNames() {
		if value, ok := doc.Limits[name]; ok {
			limits = append(limits, name+"="+number(value))
		}
	}
	for _, list := range []struct {
		name string
		ids  []string
	}{
		{"system", doc.Context.System}, {"before", doc.Context.Before},
		{"after", doc.Context.After}, {"suppress", doc.Context.Suppress},
	} {
		for _, id := range list.ids {
			context = append(context, list.name+" "+id)
		}
	}
	perms := append([]string{}, doc.Permissions.Capabilities...)
	for _, a := range doc.Permissions.Acknowledged {
		perms = append(perms, "risk:"+a.Risk)
	}
	w.inputs, w.outputs = strings.Join(inputs, " "), strings.Join(outputs, " ")
	w.limits, w.context = strings.Join(limits, " "), strings.Join(context, ", ")
	w.perms = strings.Join(perms, " ")
	if !doc.Permissions.Declared {
		w.perms = "-"
	}
	return w
}

// TestWorkspaceBodies checks what the summaries of [TestWorkspace] leave out.
func TestWorkspaceBodies(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/workspace/directives/jobs/everything.md")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := parse.Directive("everything.md", src)
	if err != nil {
		t.Fatal(err)
	}
	const want = `<process>
    <step>Do it. & do it well.</step>
    <template>if a < b && c { "x" }
` + "```\nnot the end\n```" + `
    </template>
  </process>

Then stop.`
	if doc.Body != want {
		t.Errorf("body:\n%s\nwant:\n%s", doc.Body, want)
	}
	if doc.Title != "Everything" || doc.Prose != "" {
		t.Errorf("title %q, prose %q", doc.Title, doc.Prose)
	}

	src, err = os.ReadFile("testdata/workspace/directives/team/review.md")
	if err != nil {
		t.Fatal(err)
	}
	if doc, err = parse.Directive("review.md", src); err != nil {
		t.Fatal(err)
	}
	hook := item.Hook{
		ID: "note", Event: "after_step", Position: "after", Wrap: new(bool), Line: 34,
		Conditions: []item.Condition{{Path: "cost.turns", Op: "gte", Value: int64(2)}},
		Actions: []item.Action{{Primary: "execute", ItemType: "tool", ItemID: "team/note",
			Params: map[string]any{"text": "${thread_id}"}}},
	}
	if len(doc.Hooks) != 1 || !reflect.DeepEqual(doc.Hooks[0], hook) {
		t.Errorf("hooks %+v, want %+v", doc.Hooks, hook)
	}
	if doc.ContinuationDirective != "team/resume" || doc.Inputs[1].Default != int64(2) {
		t.Errorf("continuation %q, default %#v", doc.ContinuationDirective, doc.Inputs[1].Default)
	}
	if doc.Inputs[0].Description != `File to review (e.g., "main.go")` {
		t.Errorf("description %q", doc.Inputs[0].Description)
	}
}

func mark(required bool) string {
	if required {
		return "!"
	}
	return ""
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
