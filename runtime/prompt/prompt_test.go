package prompt

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

var update = flag.Bool("update", false, "rewrite golden files")

func outputs() []item.Output {
	return []item.Output{
		{Name: "path", Type: "string", Required: true, Description: "Where the report is, in <project>"},
		{Name: "notes"},
	}
}

func TestBuild(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]Input{
		"full": {
			Directive: &item.DirectiveDoc{
				Name: `review "all"`, Description: "Review A & B\nfor <bugs>.", Outputs: outputs(),
				Success: "A report with <b>every</b> finding.", Failure: "Say what is missing.",
				Body: "\n<process>\n  <step name=\"read\">Read & judge.</step>\n</process>\n",
			},
			Capabilities: []string{"rye.execute.tool.rye.file-system.*", "rye.fetch.*"},
			Context: Blocks{
				System: []string{"You are careful.", "", "You are brief."},
				Before: []string{"<Style id=\"style\" type=\"knowledge\">Plain & short.</Style>"},
				After:  []string{"Remember the style."},
			},
		},
		"least": {Directive: &item.DirectiveDoc{Name: "least", Body: "Do it."}},
		"secrets": {
			Directive: &item.DirectiveDoc{Name: "deploy", Body: "Use {secret:token}."}, Secrets: []string{"token", "pass.word"},
		},
		"prose": {Directive: &item.DirectiveDoc{Name: "prose", Success: "It worked.", Body: "Do it."}},
	} {
		system, user := Build(in)
		got := "system:\n" + system + "\n\nuser:\n" + user + "\n"
		golden(t, "build_"+name, got)
	}
}

func TestNudge(t *testing.T) {
	t.Parallel()
	golden(t, "nudge", strings.Join([]string{
		Nudge(1, nil), Nudge(1, outputs()), Nudge(MaxNudges, outputs()),
	}, "\n\n---\n\n")+"\n")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s", name, got)
	}
}

// Nothing outside the body can open or close an element.
func TestBuildEscapes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		hostile := rapid.StringMatching(`[a"&<>/=\n]{0,10}`)
		d := &item.DirectiveDoc{Name: hostile.Draw(rt, "name"), Description: "x" + hostile.Draw(rt, "description"), Body: "body"}
		_, user := Build(Input{Directive: d, Capabilities: []string{hostile.Draw(rt, "capability")}})
		if n := strings.Count(user, "<"); n != 6 {
			rt.Fatalf("%d elements opened or closed, want 6:\n%s", n, user)
		}
		if opening, _, _ := strings.Cut(user, "\n"); strings.Count(opening, `"`) != 2 {
			rt.Fatalf("the name leaves its quotes: %s", opening)
		}
	})
}

func TestBodyIsVerbatim(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		body := strings.Trim(rapid.String().Draw(rt, "body"), "\n")
		_, user := Build(Input{Directive: &item.DirectiveDoc{Name: "d", Body: body}})
		if !strings.Contains(user, "\n"+body+"\n") {
			rt.Fatalf("body %q is not in %q", body, user)
		}
	})
}
