package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/validate"
)

// corpusFindings is all that is wrong with the corpus of existing directives, by
// code, without its settings. Every one of them is true:
// capabilities whose risk nobody accepts, since the original system does not ask;
// an input that the body has forgotten; and a directive that is there to run out
// of money, which does not even pay for its first call.
var corpusFindings = map[string][]string{
	"risk_unacknowledged": {
		"rye/agent/core/base", "rye/agent/core/base_execute_only", "rye/core/create_directive", "rye/core/create_knowledge",
		"rye/core/create_threaded_directive", "rye/core/create_tool", "test/context/broad_capabilities_base",
		"test/context/inherited_capabilities_minimal", "test/context/inherited_capabilities_test", "test/context/spawn_with_context",
	},
	"input_unused": {"rye/core/create_threaded_directive"},
	"limit_spend":  {"test/limits/spend_limit_test"},
	"limit_tokens": {
		"rye/core/create_directive", "rye/core/create_knowledge", "rye/core/create_threaded_directive", "rye/core/create_tool",
		"test/context/leaf_context", "test/context/spawn_with_context", "test/tools/file_system/write_and_read",
		"test/tools/primary/load_and_summarize", "test/tools/primary/search_and_report",
	},
	"placeholder": {
		"rye/core/create_directive", "rye/core/create_knowledge", "rye/core/create_threaded_directive", "rye/core/create_tool",
	},
}

func TestCorpusValidates(t *testing.T) {
	t.Parallel()
	corpus, err := corpusDir()
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(corpus, lookAlikes) {
		t.Skip("the corpus is not at hand")
	}
	project, home := t.TempDir(), t.TempDir()
	for _, kind := range []string{"directives", "knowledge"} {
		if err := os.CopyFS(filepath.Join(project, ".ai", kind), os.DirFS(filepath.Join(corpus, kind))); err != nil {
			t.Fatal(err)
		}
	}
	if err := uncheckSignatures(home); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("rye-mcp", "validate", "--all", "--json", "--project", project)
	cmd.Env = append(os.Environ(), "HOME="+home, "USER_SPACE="+home, "ANTHROPIC_API_KEY="+testKey)
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != 1 { // there is an error
		t.Fatalf("exit %d, %v: %s", code, err, out)
	}
	var r validate.Report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, f := range r.Findings {
		if code := string(f.Code); !slices.Contains(got[code], f.Item) {
			got[code] = append(got[code], f.Item)
		}
		if f.Line < 1 {
			t.Errorf("no line: %+v", f)
		}
	}
	// Most real directives allow 4096 tokens: that pays for a first request, with room
	// for an answer and a second turn.
	for _, first := range r.Requests {
		if first.Tools > 2_700 || first.Tokens > 3_600 || strings.HasPrefix(first.Item, "test/") && first.Tokens > 2_000 {
			t.Errorf("%s: its first request takes %s", first.Item, first.Text())
		}
	}
	if len(r.Requests) < 30 {
		t.Errorf("the first requests of %d directives are estimated", len(r.Requests))
	}
	if r.Items < 40 || fmt.Sprint(got) != fmt.Sprint(corpusFindings) {
		t.Errorf("%d items, found\n%v\nwant\n%v", r.Items, got, corpusFindings)
	}
}
