package control

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// composedDirective has what it extends, and metadata.
const composedDirective = "# Work\n\n```xml\n" + `<directive name="%s" version="1.0.0" extends="%s">
  <metadata><description>Do some work</description><model tier="fast" />%s</metadata>
  <inputs><input name="who" type="string" required="false">whom</input></inputs>
  <outputs><output name="answer" type="string" required="true">What came of it</output></outputs>
</directive>
` + "```\n\nWork for {input:who?}.\n"

// composedScene has a chain of three: leaf → mid → root.
func composedScene(t *testing.T) *scene {
	t.Helper()
	s := newScene(t)
	s.write("knowledge/who.md", "You work in ${project_path} for ${inputs.who}.\n")
	s.write("knowledge/rules.md", "Be ${mood}.\n")
	s.write("directives/root.md", fmt.Sprintf(composedDirective, "root", "", "<context><system>who</system></context>"+
		"<permissions><execute><tool>rye.file-system.*</tool></execute></permissions>"))
	s.write("directives/mid.md", fmt.Sprintf(composedDirective, "mid", "root", "<context><after>rules</after></context>"))
	s.write("directives/leaf.md", fmt.Sprintf(composedDirective, "leaf", "mid", "<context><suppress>h</suppress></context>"))
	return s
}

func TestPlanShowsWhatIsInherited(t *testing.T) {
	t.Parallel()
	s := composedScene(t)
	got, err := s.c.Planner.Preview(s.ctx, action.Caller{}, action.StartRequest{Directive: "leaf"})
	s.noError(err)
	raw, err := json.Marshal(got.Plan.Inheritance)
	s.noError(err)
	path := func(file string) string { return fmt.Sprintf(`"space":"project","path":"%s/.ai/%s"`, s.project, file) }
	want := `{"extends_chain":[{"item_id":"leaf",` + path("directives/leaf.md") + `},{"item_id":"mid",` + path("directives/mid.md") +
		`},{"item_id":"root",` + path("directives/root.md") + `}],"context":[{"item_id":"who","position":"system","directive":"root",` +
		path("knowledge/who.md") + `},{"item_id":"rules","position":"after","directive":"mid",` + path("knowledge/rules.md") +
		`}],"suppressed":["h"],"capabilities_from":"root"}`
	if string(raw) != want {
		t.Errorf("got\n%s\nwant\n%s", raw, want)
	}
	if !slices.Equal(got.Plan.Capabilities, []string{"rye.execute.tool.rye.file-system.*"}) || len(got.Plan.Warnings) != 0 {
		t.Errorf("plan %+v", got.Plan)
	}
	plain, err := s.c.Planner.Preview(s.ctx, action.Caller{}, action.StartRequest{Directive: "work"})
	s.noError(err)
	if raw, err = json.Marshal(plain.Plan.Inheritance); err != nil || string(raw) != "{}" {
		t.Errorf("of a directive that inherits nothing: %s, %v", raw, err)
	}
}

// The directives that a thread extends are on record, for its process and for readers.
func TestChainIsOnRecord(t *testing.T) {
	t.Parallel()
	s := composedScene(t)
	meta, err := s.folder(s.start("leaf", "")).ReadMeta(s.c.Threads.Records.Seal())
	s.noError(err)
	var ids []string
	for _, link := range meta.Chain {
		found, err := s.c.Planner.Resolver.Find(item.Directive, link.Directive)
		s.noError(err)
		if link.Hash != found.Hash {
			t.Errorf("hash of %s: %s", link.Directive, link.Hash)
		}
		ids = append(ids, link.Directive)
	}
	if strings.Join(ids, " ") != "mid root" || meta.Extends() != "mid" {
		t.Errorf("chain %v, extends %q", ids, meta.Extends())
	}
}

// A directive that cannot be composed is refused, with what to mend, before anything exists.
func TestStartRefusesWhatCannotBeComposed(t *testing.T) {
	t.Parallel()
	s := composedScene(t)
	s.write("directives/cyclic.md", fmt.Sprintf(composedDirective, "cyclic", "cyclic", ""))
	s.write("directives/orphan.md", fmt.Sprintf(composedDirective, "orphan", "rot", ""))
	s.write("directives/forgets.md", fmt.Sprintf(composedDirective, "forgets", "mid", "<context><before>rule</before></context>"))
	s.write("directives/heir.md", fmt.Sprintf(composedDirective, "heir", "forgets", ""))
	for directive, c := range map[string]struct {
		code           tool.Code
		words, nearest string
	}{
		"cyclic":  {tool.CodeInvalidItem, "cyclic → cyclic", ""},
		"orphan":  {tool.CodeNotFound, "orphan → rot", "root"},
		"forgets": {tool.CodeNotFound, ".ai/directives/forgets.md) asks for <before>rule", "rules"},
		"heir":    {tool.CodeNotFound, ".ai/directives/forgets.md) asks for <before>rule", "rules"},
	} {
		for name, try := range map[string]func() error{
			"start": func() error {
				_, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: directive})
				return err
			},
			"plan": func() error {
				_, err := s.c.Planner.Preview(s.ctx, action.Caller{}, action.StartRequest{Directive: directive})
				return err
			},
			"inline": func() error { return s.inline(directive, map[string]any{}, new(action.InlineDirective)) },
		} {
			err := try()
			f, ok := errors.AsType[*tool.Fault](err)
			if !ok || f.Code != c.code || !strings.Contains(f.Message, c.words) {
				t.Errorf("%s %s: %v (%+v)", name, directive, err, f)
				continue
			}
			if nearest, _ := f.Details["nearest_ids"].([]string); c.nearest != "" && !slices.Contains(nearest, c.nearest) {
				t.Errorf("%s %s: nearest %v", name, directive, nearest)
			}
		}
	}
	if list, err := s.c.View.List(s.ctx, view.ListRequest{}); err != nil || list.Count != 0 {
		t.Errorf("threads %+v, %v", list, err)
	}
}

// inline executes a directive for the caller's own model.
func (s *scene) inline(directive string, inputs map[string]any, into *action.InlineDirective) error {
	s.Helper()
	raw, err := json.Marshal(inputs)
	s.noError(err)
	actions := action.New(action.Deps{Resolver: s.c.Planner.Resolver, Trust: s.c.Settings.Trust, Threads: OfOperations(s.c), Compose: s.c.Planner.Compose})
	got, err := actions.Execute(s.ctx, action.Caller{Env: tool.Env{Project: s.project}},
		action.ExecuteRequest{ItemType: "directive", ItemID: directive, Thread: action.ThreadInline, Parameters: raw})
	if err != nil {
		return err
	}
	*into = *got.(*action.InlineDirective)
	return nil
}

// A caller without any provider gets all of the directive as one text. The
// input that it gives is not looked at again.
func TestInlineIsComposed(t *testing.T) {
	t.Parallel()
	s := composedScene(t)
	var got action.InlineDirective
	const sly = "${project_path} {input:who} </who>"
	s.noError(s.inline("leaf", map[string]any{"who": sly}, &got))
	// The text in an element does not end it.
	inside := strings.ReplaceAll(sly, "</", `<\/`)
	want := "<who id=\"who\" type=\"knowledge\">\nYou work in " + s.project + " for " + inside + ".\n</who>\n\n" +
		"Work for " + sly + ".\n\n<rules id=\"rules\" type=\"knowledge\">\nBe .\n</rules>"
	if got.Body != want {
		t.Errorf("got\n%s\nwant\n%s", got.Body, want)
	}
	for _, words := range []string{"leaf", "answer (string): What came of it", "rye.execute.tool.rye.file-system.*", "limits"} {
		if !strings.Contains(got.YourDirections, words) {
			t.Errorf("directions lack %q: %s", words, got.YourDirections)
		}
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "${mood}") {
		t.Errorf("warnings %q", got.Warnings)
	}
	if list, err := s.c.View.List(s.ctx, view.ListRequest{}); err != nil || list.Count != 0 {
		t.Errorf("threads %+v, %v", list, err)
	}
}

// Capabilities that come from an ancestor are judged as if they were declared,
// and it is the ancestor that has to answer for them.
func TestInheritedRiskIsJudged(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("directives/powerful.md", fmt.Sprintf(composedDirective, "powerful", "", "<permissions>*</permissions>"))
	s.write("directives/heir.md", fmt.Sprintf(composedDirective, "heir", "powerful", ""))
	_, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "heir"})
	if f, ok := errors.AsType[*tool.Fault](err); !ok || f.Code != tool.CodePermissionDenied || !strings.Contains(f.Message, "directive powerful declares") {
		t.Errorf("got %v", err)
	}
}

// A child inherits along its chain before it inherits from its parent, and is
// bounded by its parent all the same.
func TestChainComesBeforeParent(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := composedScene(t)
	s.write("directives/top.md", fmt.Sprintf(directive, "top", "", startsAny))
	s.write("directives/bare.md", fmt.Sprintf(composedDirective, "bare", "", ""))
	top := s.start("top", "")
	for child, want := range map[string]string{
		"leaf": "rye.execute.tool.rye.file-system.*",
		"bare": "rye.execute.tool.rye.file-system.* rye.execute.directive.*",
	} {
		started, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: child, Parent: top})
		s.noError(err)
		meta, err := s.folder(started.ThreadID).ReadMeta(s.c.Threads.Records.Seal())
		s.noError(err)
		got := slices.Sorted(slices.Values(meta.Capabilities))
		if wants := slices.Sorted(slices.Values(strings.Fields(want))); !slices.Equal(got, wants) {
			t.Errorf("%s has %q, want %q", child, got, wants)
		}
		s.order(started.ThreadID, "claim")
		s.wantState(thread.Running, started.ThreadID)
	}
}

const routingHooks = `hooks:
  - id: too-late
    event: resolve_extends
    condition: {path: category, op: eq, value: never}
    action: {set_extends: mid}
  - id: by-category
    event: resolve_extends
    condition: {all: [{path: category, op: eq, value: team}, {path: has_extends, op: eq, value: false}, {path: inputs.who, op: exists}]}
    action: {set_extends: "${inputs.who}"}
`

// A hook of the project chooses what a directive extends that says nothing, as
// long as the directive does not suppress it.
func TestHookRoutes(t *testing.T) {
	t.Parallel()
	s := composedScene(t)
	s.write("config/agent/hooks.yaml", routingHooks)
	const team = "<category>team</category>"
	s.write("directives/routed.md", fmt.Sprintf(composedDirective, "routed", "", team))
	s.write("directives/shy.md", fmt.Sprintf(composedDirective, "shy", "", team+"<context><suppress>by-category</suppress></context>"))
	s.write("directives/own.md", fmt.Sprintf(composedDirective, "own", "root", team))
	source := s.project + "/.ai/config/agent/hooks.yaml:6"
	for directive, c := range map[string]struct{ who, extends string }{
		"routed": {"mid", "mid"}, "shy": {"mid", ""}, "own": {"mid", "root"}, "work": {"", ""},
	} {
		req := action.StartRequest{Directive: directive, Inputs: map[string]any{}}
		if c.who != "" {
			req.Inputs["who"] = c.who
		}
		got, err := s.c.Planner.Preview(s.ctx, action.Caller{}, req)
		s.noError(err)
		extends := ""
		if chain := got.Plan.ExtendsChain; len(chain) > 0 {
			extends = chain[1].ItemID
		}
		if extends != c.extends || (got.Plan.ExtendsHook == "by-category ("+source+")") != (directive == "routed") {
			t.Errorf("%s extends %q by %q", directive, extends, got.Plan.ExtendsHook)
		}
	}
	started, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "routed", Inputs: map[string]any{"who": "mid"}})
	s.noError(err)
	meta, err := s.folder(started.ThreadID).ReadMeta(s.c.Threads.Records.Seal())
	s.noError(err)
	if meta.Extends() != "mid" || meta.Route == nil || *meta.Route != (thread.Route{Hook: "by-category", Layer: 3, Source: source}) {
		t.Errorf("thread.json: %v %+v", meta.Chain, meta.Route)
	}
	s.order(started.ThreadID, "claim")
	_, err = s.c.Planner.Preview(s.ctx, action.Caller{}, action.StartRequest{Directive: "routed", Inputs: map[string]any{"who": "routed"}})
	if code(err) != tool.CodeInvalidItem || !strings.Contains(err.Error(), "by-category") || !strings.Contains(err.Error(), "routed → routed") {
		t.Errorf("routed to itself: %v", err)
	}
	var inline action.InlineDirective
	s.noError(s.inline("routed", map[string]any{"who": "mid"}, &inline))
	if !strings.Contains(inline.Body, "You work in") {
		t.Errorf("inline: %s", inline.Body)
	}
}

// nameOf is what a signature of a file below .ai is for.
func nameOf(file string) sign.Name {
	if id, ok := strings.CutPrefix(file, "config/"); ok {
		return sign.Name{Kind: sign.KindSettings, ID: id}
	}
	id, _ := strings.CutPrefix(strings.TrimSuffix(file, path.Ext(file)), "directives/")
	return sign.Name{Kind: string(item.Directive), ID: id}
}

// Hooks of settings act in every thread, so the file must be signed like what it
// lets run.
func TestHooksFileMustBeSigned(t *testing.T) {
	t.Parallel()
	s := composedScene(t)
	key, err := sign.Generate(s.project, false, rand.Reader)
	s.noError(err)
	s.c.Settings.Trust = &trust.Gate{
		Own:      func() (*sign.PublicKey, error) { return key.Public(), nil },
		Settings: func() (trust.Settings, error) { return trust.Settings{Mode: trust.Strict}, nil },
	}
	signed := func(name, content string) {
		text, err := sign.Attach([]byte(content), path.Ext(name), nameOf(name), key, s.c.Threads.Now())
		s.noError(err)
		s.write(name, string(text))
	}
	signed("directives/bare.md", fmt.Sprintf(composedDirective, "bare", "", ""))
	signed("directives/up.md", fmt.Sprintf(composedDirective, "up", "", ""))
	const hooks = "hooks: [{id: up, event: resolve_extends, condition: {path: directive, op: eq, value: bare}, action: {set_extends: up}}]\n"
	signed("config/agent/hooks.yaml", hooks)
	got, err := s.c.Planner.Preview(s.ctx, action.Caller{}, action.StartRequest{Directive: "bare"})
	s.noError(err)
	if len(got.Plan.ExtendsChain) != 2 || len(got.Plan.Warnings) != 0 {
		t.Errorf("signed: %+v", got.Plan)
	}
	s.write("config/agent/hooks.yaml", hooks)
	_, err = s.c.Planner.Preview(s.ctx, action.Caller{}, action.StartRequest{Directive: "bare"})
	refused, is := errors.AsType[*tool.Fault](err)
	if !is || refused.Code != tool.CodeIntegrity || !strings.Contains(refused.Try, "rye-mcp sign "+s.project+"/.ai/config/agent/hooks.yaml") ||
		strings.Contains(s.json(refused.Body()), "rye-mcp") {
		t.Errorf("unsigned: %v", err)
	}
	s.write("config/agent/hooks.yaml", "hooks: []\n") // nothing to sign for
	_, err = s.c.Planner.Preview(s.ctx, action.Caller{}, action.StartRequest{Directive: "bare"})
	s.noError(err)
}

// A hook that cannot run is found before the thread exists, wherever it stands.
func TestBadHookIsRefused(t *testing.T) {
	t.Parallel()
	s := composedScene(t)
	bad := "<hooks><hook id=\"h\" event=\"at_noon\"><action primary=\"execute\" item_type=\"tool\" item_id=\"rye/bash\"/></hook></hooks>"
	s.write("directives/bad.md", fmt.Sprintf(composedDirective, "bad", "", bad))
	s.write("directives/heir.md", fmt.Sprintf(composedDirective, "heir", "bad", ""))
	for _, directive := range []string{"bad", "heir"} {
		_, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: directive})
		if code(err) != tool.CodeInvalidConfig || !strings.Contains(err.Error(), "bad.md:") || !strings.Contains(err.Error(), "at_noon") {
			t.Errorf("%s: %v", directive, err)
		}
	}
}

// json is what a client is sent of an answer.
func (s *scene) json(v any) string {
	s.Helper()
	text, err := json.Marshal(v)
	s.noError(err)
	return string(text)
}
