package control

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const riskFile = "config/agent/capability_risk.yaml"

// everything is a policy that lets everybody do anything, as far as it may say so.
const everything = "risk_levels: {elevated: {policy: allow}, unrestricted: {policy: allow}}\nclassifications: [{risk: safe, patterns: ['*']}]\n"

// permits is a directive with these permissions.
func permits(permissions string) string {
	return "# Work\n\n```xml\n" + `<directive name="risky" version="1.0.0">
  <metadata>
    <description>Do some work</description>
    <model tier="fast" />
    <permissions>` + permissions + "</permissions>\n  </metadata>\n</directive>\n```\n\nWork.\n"
}

// A directive is judged by what it declares before anything is registered.
func TestRisk(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const shell, all = "<execute><tool>rye.bash</tool></execute>", "<execute>*</execute><fetch>*</fetch><sign>*</sign>"
	for name, c := range map[string]struct {
		permissions   string
		user, project string // capability_risk.yaml
		refused       string // in the refusal; empty: it starts
		warned        string // in its only warning; empty: there is none
	}{
		"harmless":                  {permissions: "<execute><tool>rye.file-system.*</tool><directive>*</directive><knowledge>*</knowledge></execute><search>*</search>"},
		"nothing":                   {permissions: ""},
		"a shell":                   {permissions: shell, warned: `rye.execute.tool.rye.bash, whose risk is elevated (A shell can do whatever its user can); add <acknowledge risk="elevated">`},
		"a shell, accepted":         {permissions: shell + `<acknowledge risk="elevated">we build</acknowledge>`},
		"signing":                   {permissions: "<sign><directive>*</directive></sign>", warned: `whose risk is elevated`},
		"everything":                {permissions: "*", refused: `declares rye.*, whose risk is unrestricted (A wildcard for everything), which is blocked; to accept it, add <acknowledge risk="unrestricted">why it is needed</acknowledge> to its <permissions>`},
		"everything, accepted":      {permissions: `*<acknowledge risk="unrestricted">mine</acknowledge>`},
		"too little is accepted":    {permissions: `*<acknowledge risk="elevated">mine</acknowledge>`, refused: `add <acknowledge risk="unrestricted">`},
		"every action":              {permissions: all + `<acknowledge risk="elevated">mine</acknowledge>`},
		"a tier that there is none": {permissions: `<search>*</search><acknowledge risk="deadly">x</acknowledge>`, warned: "accepts nothing; the tiers are safe, write"},
		"the user is stricter":      {permissions: shell, user: "risk_levels: {elevated: {policy: block}}\n", refused: `add <acknowledge risk="elevated">`},
		"the user is laxer":         {permissions: "*", user: everything},
		"the project is stricter":   {permissions: shell, project: "risk_levels: {elevated: {policy: block}}\n", refused: `add <acknowledge risk="elevated">`},
		"the project is laxer":      {permissions: "*", project: everything, refused: `add <acknowledge risk="unrestricted">`},
		"the project is laxer than the user": {permissions: shell, user: "risk_levels: {elevated: {policy: block}}\n", project: everything,
			refused: `add <acknowledge risk="elevated">`},
		"the project's file is broken": {permissions: shell, project: "risk_levels: 1\n", refused: "risk_levels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.write("directives/risky.md", permits(c.permissions))
			if c.project != "" {
				s.write(riskFile, c.project)
			}
			if c.user != "" {
				s.write(filepath.Join("..", "..", "user", ".ai", riskFile), c.user)
			}
			started, err := s.c.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "risky"})
			if c.refused != "" {
				s.wantNothing(err, c.refused)
				return
			}
			s.noError(err)
			if c.warned == "" && len(started.Warnings) > 0 {
				s.Errorf("warnings %q", started.Warnings)
			}
			if c.warned != "" && (len(started.Warnings) != 1 || !strings.Contains(started.Warnings[0], c.warned)) {
				s.Errorf("warnings %q, want one with %q", started.Warnings, c.warned)
			}
			meta, err := s.folder(started.ThreadID).ReadMeta(s.c.Threads.Records.Seal())
			if err != nil || !slices.Equal(meta.Warnings, started.Warnings) {
				s.Errorf("thread.json has the warnings %q, %v", meta.Warnings, err)
			}
		})
	}
}

// wantNothing fails the test unless a start was refused and has left nothing.
func (s *scene) wantNothing(err error, reason string) {
	s.Helper()
	if c := code(err); c != tool.CodePermissionDenied && c != tool.CodeInvalidConfig || !strings.Contains(err.Error(), reason) {
		s.Errorf("%s: %v; want %q", code(err), err, reason)
	}
	list, err := s.c.View.List(s.ctx, view.ListRequest{})
	s.noError(err)
	if len(list.Threads) > 0 {
		s.Errorf("registered: %+v", list.Threads)
	}
	entries, err := os.ReadDir(homeOf(s.c).Dir)
	s.noError(err)
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "risky") {
			s.Errorf("there is a folder %s", e.Name())
		}
	}
}

// A child is judged by what it declares and can have: not by what it inherits,
// which its parent has answered for, nor by what an ancestor allows nothing of.
func TestRiskOfChildren(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const accepted = `<acknowledge risk="unrestricted">mine</acknowledge>`
	s.write("directives/bold.md", strings.Replace(permits("*"+accepted), "risky", "bold", 1))
	s.write("directives/heir.md", strings.NewReplacer("risky", "heir", "<permissions></permissions>", "").Replace(permits("")))
	s.write("directives/greedy.md", strings.Replace(permits("*"), "risky", "greedy", 1))
	s.write("directives/vain.md", strings.Replace(permits("<sign>*</sign>"), "risky", "vain", 1))
	bold, meek := s.start("bold", ""), s.start("idle", "")
	for _, c := range []struct {
		directive string
		parent    thread.ID
		refused   bool
		warned    string
	}{
		{directive: "heir", parent: bold},
		{directive: "greedy", parent: bold, refused: true},
		{directive: "greedy", parent: meek, refused: true}, // some of it would have an effect
		{directive: "vain", parent: bold, warned: "rye.sign.*, whose risk is elevated"},
		{directive: "vain", parent: meek, warned: "without effect: rye.sign.*, of which its parent allows nothing"},
	} {
		plan, err := s.c.Planner.Preview(s.ctx, action.Caller{}, action.StartRequest{Directive: c.directive, Parent: c.parent})
		warnings := fmt.Sprint(plan.Plan.Warnings)
		if refused := code(err) == tool.CodePermissionDenied; refused != c.refused || !refused && err != nil {
			s.Errorf("%s below %s: %v", c.directive, c.parent, err)
		}
		if !strings.Contains(warnings, c.warned) || c.warned == "" && len(plan.Plan.Warnings) > 0 || len(plan.Plan.Warnings) > 1 {
			s.Errorf("%s below %s: warnings %s", c.directive, c.parent, warnings)
		}
	}
}
