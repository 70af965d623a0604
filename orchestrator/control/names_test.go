package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// oddly is a directive with these elements in its metadata and below them.
const oddly = "# N\n\n```xml\n" + `<directive name="%s" version="1.0.0"%s>
  <metadata><description>d</description>%s</metadata>
  %s
</directive>
` + "```\n\nWork.\n"

// TestAttackNearMiss: A directive writes its permissions, limits, inputs, outputs or model
// almost as the format has them, so that a reader sees bounds that nobody keeps. No
// thread is started, and the error names the line and the nearest known name.
func TestAttackNearMiss(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for id, test := range map[string]struct{ root, metadata, below, says string }{
		"rights":  {metadata: `<permissoins><execute><tool>rye.file-system.read</tool></execute></permissoins>`, says: "rights.md:5: <permissoins> is not known in <metadata>; did you mean <permissions>?"},
		"inner":   {metadata: `<permissions><execute><tool except="rye.bash">*</tool></execute></permissions>`, says: `<tool> has no attribute "except"`},
		"outside": {below: `<limits spend="0.01"/>`, says: "<limits> belongs in <metadata>"},
		"limit":   {metadata: `<limit spend="0.01"/>`, says: "did you mean <limits>?"},
		"teir":    {metadata: `<model teir="fast"/>`, says: "did you mean tier?"},
		"needed":  {below: `<inputs><input name="a" requird="true"/></inputs>`, says: "did you mean required?"},
		"owed":    {below: `<outputs><output name="a" requird="true"/></outputs>`, says: "did you mean required?"},
		"heir":    {root: ` extend="base"`, says: "did you mean extends?"},
	} {
		s.write("directives/team/"+id+".md", fmt.Sprintf(oddly, id, test.root, test.metadata, test.below))
		for how, start := range map[string]func(action.StartRequest) error{
			"start": func(req action.StartRequest) error { _, err := s.c.Start(s.ctx, action.Caller{}, req); return err },
			"plan": func(req action.StartRequest) error {
				_, err := s.c.Planner.Preview(s.ctx, action.Caller{}, req)
				return err
			},
		} {
			err := start(action.StartRequest{Directive: "team/" + id})
			f := action.Fault(err)
			if f == nil || f.Code != tool.CodeInvalidItem || !strings.Contains(f.Message, test.says) {
				t.Errorf("%s of %s: %v; want %q", how, id, err, test.says)
			}
		}
	}
	if rows, _, err := s.c.Threads.Store.List(s.ctx, store.Filter{}); err != nil || len(rows) > 0 {
		t.Errorf("there are threads: %+v, %v", rows, err)
	}
}

// TestUnknownNamesWarn starts directives with names that change nothing, and tells
// of them.
func TestUnknownNamesWarn(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("directives/team/odd.md", fmt.Sprintf(oddly, "even", "", `<parent>p</parent>`, `<inputs><input name="a" type="str" default="x"/></inputs>
<continuation_directive>next</continuation_directive>`))
	started, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "team/odd"})
	if err != nil {
		t.Fatal(err)
	}
	told := strings.Join(started.Warnings, "\n")
	for _, want := range []string{
		`<directive name="even"> stands in the file of team/odd`, "<parent> is not known", `the type "str" is not of the format`,
		"<continuation_directive> belongs in <metadata>",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not told:\n%s", want, told)
		}
	}
}

// TestUnknownNamesOfAncestors stops a directive whose ancestor, which it inherits its
// capabilities from, misspells them, and lets an ancestor misspell what is not inherited.
func TestUnknownNamesOfAncestors(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("directives/base.md", fmt.Sprintf(oddly, "base", "", `<permissoins>*</permissoins>`, ""))
	s.write("directives/heir.md", fmt.Sprintf(oddly, "heir", ` extends="base"`, "", ""))
	s.write("directives/ground.md", fmt.Sprintf(oddly, "ground", "", `<limit turns="1"/>`, ""))
	s.write("directives/son.md", fmt.Sprintf(oddly, "son", ` extends="ground"`, "", ""))
	if _, err := s.c.Planner.Preview(s.ctx, action.Caller{}, action.StartRequest{Directive: "heir"}); err == nil || !strings.Contains(err.Error(), "directive base is not started") {
		t.Errorf("got %v", err)
	}
	if plan, err := s.c.Planner.Preview(s.ctx, action.Caller{}, action.StartRequest{Directive: "son"}); err != nil || !strings.Contains(fmt.Sprint(plan.Plan.Warnings), "<limit>") {
		t.Errorf("got %+v, %v", plan.Plan.Warnings, err)
	}
}

// TestProviderIsObeyed refuses a directive whose provider cannot be had, where
// another one could be used.
func TestProviderIsObeyed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for id, test := range map[string]struct{ model, says string }{
		"zen":     {`<model provider="zen" tier="fast"/>`, `no model provider "zen"; known are`},
		"keyless": {`<model provider="anthropic" tier="fast"/>`, "model provider anthropic cannot be used: set ANTHROPIC_API_KEY"},
		"nobody":  {`<model id="no-such-model"/>`, "no-such-model"},
	} {
		s.write("directives/"+id+".md", fmt.Sprintf(oddly, id, "", test.model, ""))
		_, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: id})
		if f := action.Fault(err); f == nil || f.Code != tool.CodeNoProvider || !strings.Contains(f.Message, test.says) {
			t.Errorf("%s: %v; want %q", id, err, test.says)
		}
	}
	s.write("directives/ours.md", fmt.Sprintf(oddly, "ours", "", `<model provider="scripted" tier="fast"/>`, ""))
	plan, err := s.c.Planner.Preview(s.ctx, action.Caller{}, action.StartRequest{Directive: "ours"})
	if err != nil || !strings.HasPrefix(plan.Plan.Model, "scripted/") || len(plan.Plan.Warnings) > 0 {
		t.Errorf("got %s, %v, %v", plan.Plan.Model, plan.Plan.Warnings, err)
	}
}

// TestPlanOfAChild shows of a child what its parent leaves of its capabilities, what
// was dropped, and its tools.
func TestPlanOfAChild(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("directives/top.md", fmt.Sprintf(directive, "top", "", startsAny))
	s.write("directives/wide.md", fmt.Sprintf(oddly, "wide", "", `<permissions><execute><tool>rye.*</tool></execute><sign>*</sign></permissions>`, ""))
	root := s.start("top", "")
	req := action.StartRequest{Directive: "wide", Parent: root}
	plan, err := s.c.Planner.Preview(s.ctx, action.Caller{}, req)
	s.noError(err)
	if got := strings.Join(plan.Plan.Capabilities, " "); got != "rye.execute.tool.rye.file-system.* rye.execute.tool.rye.agent.threads.thread_directive" {
		t.Errorf("capabilities %s", got) // the second starts children, which the parent may by its newer name
	}
	if got := strings.Join(plan.Plan.Dropped, " "); got != "rye.sign.*" {
		t.Errorf("dropped %s", got)
	}
	if got := plan.Plan.DroppedWhy; len(got) != 1 || got["rye.sign.*"] != "of which its parent allows nothing; besides, its risk is elevated and not acknowledged" {
		t.Errorf("dropped because %q", got)
	}
	if got := strings.Join(plan.Plan.Tools, " "); !strings.Contains(got, "rye/file-system/read") || strings.Contains(got, "rye/bash") {
		t.Errorf("tools %s", got)
	}
	started, err := s.c.Start(s.ctx, action.Caller{}, req)
	s.noError(err)
	meta, err := s.folder(started.ThreadID).ReadMeta(s.c.Threads.Records.Seal())
	s.noError(err)
	if !slices.Equal(meta.Capabilities, plan.Plan.Capabilities) || !slices.Equal(meta.Own(), []string{"rye.execute.tool.rye.*", "rye.sign.*"}) {
		t.Errorf("thread.json has the capabilities %q of %q", meta.Capabilities, meta.Own())
	}
	s.order(started.ThreadID, "claim")
	s.wantState(thread.Running, started.ThreadID)
}
