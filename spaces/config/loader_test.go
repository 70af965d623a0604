package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

func TestLayersMerge(t *testing.T) {
	t.Parallel()
	loader, _ := accepted(t, map[string]string{
		"user/agent/agent.yaml":    "provider: {default: openai, order: [openai]}\nthreads: {tool_concurrency: 2, term_seconds: 9}\n",
		"project/agent/agent.yaml": "provider: {order: [gemini, openai]}\nthreads:\n  tool_concurrency: 8\nmax_output_tokens:\n",
	})
	got, warnings, err := loader.Read().Agent()
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %v", err, warnings)
	}
	want := config.Agent{
		Provider:        config.ProviderDefaults{Default: "openai", Order: []string{"gemini", "openai"}},
		MaxOutputTokens: 8192,
		Threads: config.ThreadSettings{
			Orphans: config.OrphansCancel, ToolConcurrency: 8, SoftStopSeconds: 5, TermSeconds: 9, SweepInterval: "60m", CompressAfter: "24h", Snapshot: "auto",
		},
		Integrity: trust.Settings{Mode: trust.Strict, AcceptLegacy: []string{}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestCoordinationPlaces(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
		want  float64 // default_timeout
	}{
		{"flat", map[string]string{"project/agent/coordination.yaml": "wait_threads: {default_timeout: 1}"}, 1},
		{"nested", map[string]string{"project/agent/coordination.yaml": "coordination: {wait_threads: {default_timeout: 2}}"}, 2},
		{"old place", map[string]string{"project/coordination.yaml": "wait_threads: {default_timeout: 3}"}, 3},
		{"new place over old", map[string]string{
			"project/coordination.yaml":       "wait_threads: {default_timeout: 3}",
			"project/agent/coordination.yaml": "coordination: {wait_threads: {default_timeout: 4}}",
		}, 4},
		{"project's old place over user's new one", map[string]string{
			"project/coordination.yaml":    "coordination: {wait_threads: {default_timeout: 5}}",
			"user/agent/coordination.yaml": "wait_threads: {default_timeout: 6}",
		}, 5},
		{"bounded by the maximum", map[string]string{"user/agent/coordination.yaml": "wait_threads: {max_timeout: 60}"}, 60},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			loader, _ := spaces(t, tt.files)
			got, warnings, err := loader.Read().Coordination()
			if err != nil || len(warnings) > 0 {
				t.Fatalf("error %v, warnings %v", err, warnings)
			}
			if got.WaitThreads.DefaultTimeout != tt.want {
				t.Errorf("default_timeout %v, want %v", got.WaitThreads.DefaultTimeout, tt.want)
			}
		})
	}
}

func TestLimitSpellings(t *testing.T) {
	t.Parallel()
	loader, _ := accepted(t, map[string]string{
		"user/agent/resilience.yaml":    "limits: {turns: 3, max_spend: 2}",
		"project/agent/resilience.yaml": "limits: {max_turns: 4, spend: 1.5}",
	})
	got, _, err := loader.Read().Resilience()
	if err != nil {
		t.Fatal(err)
	}
	if got.Limits["turns"] != 4 || got.Limits["spend"] != 1.5 || got.Limits["depth"] != 5 || len(got.Limits) != 6 {
		t.Errorf("limits %v", got.Limits)
	}
	for _, twice := range []string{
		"limits:\n  turns: 3\n  max_turns: 4\n", "limits:\n  turns: 3\n  defaults: {turns: 4}\n",
		"limits:\n  defaults:\n    {max_turns: 4, turns: 4}\n", "retry:\n  max_attempts: 2\n  max_retries: 1\n",
	} {
		loader, roots := spaces(t, map[string]string{"project/agent/resilience.yaml": twice})
		_, _, err = loader.Read().Resilience()
		assertError(t, err, filepath.Join(roots.Project, ".ai/config/agent/resilience.yaml"), 3, "given")
	}
}

// TestOriginalResilience reads the keys of the original system's file, and says
// where each value stands.
func TestOriginalResilience(t *testing.T) {
	t.Parallel()
	loader, roots := spaces(t, map[string]string{
		"user/agent/resilience.yaml": "limits:\n  defaults:\n    turns: 7\n    max_spend: 0.2\nretry:\n  max_retries: 1\n  max_retrys: 1\n",
	})
	got, warnings, err := loader.Read().Resilience()
	if err != nil || got.Limits["turns"] != 7 || got.Limits["spend"] != 0.2 || got.Limits["depth"] != 5 || got.Retry.MaxAttempts != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	path := filepath.Join(roots.User, ".ai", "config", "agent", "resilience.yaml")
	if want := []string{path + `:7: retry.max_retrys: unknown key; did you mean "max_retries"?`}; !slices.Equal(warnings, want) {
		t.Errorf("warnings %q, want %q", warnings, want)
	}
	explained, err := loader.Read().Explain("resilience")
	for key, line := range map[string]int{"limits.turns": 3, "limits.spend": 4, "retry.max_attempts": 6} {
		if v := valueOf(t, explained.Values, key); err != nil || v.Line != line || v.Path != path {
			t.Errorf("%s: %+v, %v; want line %d", key, v, err, line)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, content string
		line          int
		reason        string
	}{
		{"wrong type", "# agent\nthreads:\n  tool_concurrency: many\n", 3, "threads.tool_concurrency: expected integer, but got string"},
		{"a fraction of an integer", "max_output_tokens: 1.5", 1, "expected integer"},
		{"scalar for a map", "threads: 4", 1, "expected object"},
		{"list element", "provider:\n  order:\n  - openai\n  - 7\n", 4, "provider.order.1: expected string"},
		{"the first of several", "max_output_tokens: x\nthreads: {orphans: adopt}\n", 1, "max_output_tokens"},
		{"not one of the values", "\nthreads: {orphans: adopt}", 2, `"cancel", "keep"`},
		{"below the minimum", "threads:\n  term_seconds: -1", 2, ">= 0"},
		{"not finite", "threads:\n  term_seconds: .inf", 2, "finite"},
		{"too large for an integer", "max_output_tokens: 99999999999999999999", 1, "<="},
		{"malformed for the parser", "a: b\nc: [d\n", 2, "malformed YAML"},
		{"malformed for the scanner", "a: b\nc: d: e\n", 2, "malformed YAML"},
		{"malformed on the first line", "}", 1, "malformed YAML"},
		{"tab", "threads:\n\torphans: keep\n", 2, "malformed YAML"},
		{"key given twice", "max_output_tokens: 1\nthreads: {}\nmax_output_tokens: 2\n", 3, "already defined"},
		{"a list", "\n- 1\n", 2, "want a mapping"},
		{"key that is not text", "provider:\n  1: x\n", 1, "not text"},
		{"two documents", "threads: {}\n---\nthreads: {}\n", 2, "second YAML document"},
		{"alias of itself", "threads: &a\n  orphans: *a\n", 1, "contains itself"},
		{"not text", "threads:\n  orphans: \xff\n", 2, "UTF-8"},
		{"NUL", "\x00", 1, "control character"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			loader, roots := spaces(t, map[string]string{"project/agent/agent.yaml": tt.content})
			_, _, err := loader.Read().Agent()
			assertError(t, err, filepath.Join(roots.Project, ".ai/config/agent/agent.yaml"), tt.line, tt.reason)
		})
	}
}

func assertError(t *testing.T, err error, path string, line int, reason string) {
	t.Helper()
	var e *config.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v, want a *config.Error", err)
	}
	if e.Path != filepath.FromSlash(path) || e.Line != line || !strings.Contains(e.Reason, reason) {
		t.Errorf("got %s\nwant %s:%d with %q", e, path, line, reason)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	loader, roots := spaces(t, map[string]string{
		"project/agent/agent.yaml": "category: agent\ntool_type: config\nversion: 2026-01-01\nschema_version: 1\ndescription: x\n" +
			"thread:\n  orphans: keep\nthreads:\n  tool_concurency: 3\n  colour: red\n",
	})
	got, warnings, err := loader.Read().Agent()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(roots.Project, ".ai", "config", "agent", "agent.yaml")
	want := []string{
		path + `:6: thread: unknown key; did you mean "threads"?`,
		path + `:10: threads.colour: unknown key`,
		path + `:9: threads.tool_concurency: unknown key; did you mean "tool_concurrency"?`,
	}
	if !slices.Equal(warnings, want) {
		t.Errorf("got  %q\nwant %q", warnings, want)
	}
	if got.Threads.ToolConcurrency != 4 {
		t.Error("an unknown key changed a setting")
	}
}

// originalCoordination has the keys of the original system's file.
const originalCoordination = `category: "agent"
tool_type: "config"
version: "1.0.0"
description: "coordination"
schema_version: "1.0.0"
coordination:
  wait_threads:
    default_timeout: 300
  continuation:
    trigger_threshold: 0.8
    summary_directive: "a/b"
    summary_model: "fast"
    summary_limit_overrides:
      turns: 3
    summary_max_tokens: 4000
  transcript_integrity: strict
  orphan_detection:
    enabled: true
`

func TestOriginalCoordination(t *testing.T) {
	t.Parallel()
	loader, _ := accepted(t, map[string]string{"project/coordination.yaml": originalCoordination})
	got, warnings, err := loader.Read().Coordination()
	if err != nil {
		t.Fatal(err)
	}
	if got.WaitThreads.DefaultTimeout != 300 || got.WaitThreads.MaxTimeout != 3600 {
		t.Errorf("got %+v", got)
	}
	want := config.Continuation{
		TriggerThreshold: 0.8, ResumeCeilingTokens: 16000, SummaryDirective: "a/b", SummaryModel: "fast",
		SummaryLimitOverrides: item.LimitSet{"turns": 3}, SummaryMaxTokens: 4000, MaxChain: 20, Limits: config.LimitsRemaining, Approval: config.ApprovalNone,
	}
	if !reflect.DeepEqual(got.Continuation, want) {
		t.Errorf("got %+v, want %+v", got.Continuation, want)
	}
	assertNotUsedYet(t, warnings, 1)
}

// TestContinuation: each setting holds from its lowest to its highest value, and
// a value beyond is named with its line.
func TestContinuation(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	read := func(yaml string) (config.Continuation, *resolve.Roots, []string, error) {
		loader, roots := accepted(t, map[string]string{"project/agent/coordination.yaml": "continuation:\n  " + yaml + "\n"})
		got, warnings, err := loader.Read().Coordination()
		return got.Continuation, &roots, warnings, err
	}
	for _, yaml := range []string{
		"trigger_threshold: 0.1", "trigger_threshold: 1", "resume_ceiling_tokens: 1000", "resume_ceiling_tokens: 10000000",
		"summary_max_tokens: 100", "summary_max_tokens: 1000000", "max_chain: 1", "max_chain: 1000", "limits: fresh",
		"summary_limit_overrides: {turns: 1, tokens: 2, spend: 0.5, duration_seconds: 3, spawns: 0, depth: 0}",
	} {
		if _, _, warnings, err := read(yaml); err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, %q", yaml, err, warnings)
		}
	}
	for yaml, reason := range map[string]string{
		"trigger_threshold: 0.09":               ">= 0.1",
		"trigger_threshold: 1.01":               "<= 1",
		"trigger_threshold: high":               "expected number",
		"resume_ceiling_tokens: 999":            ">= 1000",
		"resume_ceiling_tokens: 1000.5":         "expected integer",
		"summary_directive: 7":                  "expected string",
		"summary_limit_overrides: {turns: -1}":  ">= 0",
		"summary_limit_overrides: {turns: 1.5}": "expected integer",
		"summary_max_tokens: 99":                ">= 100",
		"max_chain: 0":                          ">= 1",
		"limits: none":                          "remaining",
	} {
		_, roots, _, err := read(yaml)
		assertError(t, err, filepath.Join(roots.Project, ".ai/config/agent/coordination.yaml"), 2, reason)
	}
	got, _, warnings, err := read("summary_limit_overrides: {turn: 1}")
	if err != nil || len(got.SummaryLimitOverrides) > 0 || len(warnings) != 1 || !strings.Contains(warnings[0], `did you mean "turns"?`) {
		t.Errorf("%+v, %q, %v", got.SummaryLimitOverrides, warnings, err)
	}
}

// TestTranscriptIntegrity: a project can ask for more than its user does, and
// not for less.
func TestTranscriptIntegrity(t *testing.T) {
	t.Parallel()
	const lenient, strict = "transcript_integrity: lenient\n", "transcript_integrity: strict\n"
	for _, tt := range []struct {
		user, project, want string
		leftOut             int
	}{
		{"", "", config.TranscriptStrict, 0},
		{lenient, "", config.TranscriptLenient, 0},
		{lenient, strict, config.TranscriptStrict, 0},
		{"", lenient, config.TranscriptStrict, 1},
		{"", "coordination: {transcript_integrity: lenient}\n", config.TranscriptStrict, 1},
	} {
		loader, _ := spaces(t, map[string]string{"user/agent/coordination.yaml": tt.user, "project/agent/coordination.yaml": tt.project})
		got, warnings, err := loader.Read().Coordination()
		if leftOut := loader.Read().LeftOut(); err != nil || got.TranscriptIntegrity != tt.want || len(warnings) > 0 || len(leftOut) != tt.leftOut {
			t.Errorf("user %q, project %q: %q, %q, %q, %v; want %q", tt.user, tt.project, got.TranscriptIntegrity, warnings, leftOut, err, tt.want)
		}
	}
	loader, _ := spaces(t, map[string]string{"user/agent/coordination.yaml": "transcript_integrity: off\n"})
	if _, _, err := loader.Read().Coordination(); err == nil {
		t.Error("a value that is not known was taken")
	}
}

func TestCorpusCoordination(t *testing.T) {
	t.Parallel()
	got, warnings, err := config.New(corpus(t)).Read().Coordination()
	if err != nil {
		t.Fatal(err)
	}
	assertNotUsedYet(t, warnings, 1)
	if got.Continuation.SummaryDirective != "rye/agent/threads/thread_summary" || got.Continuation.SummaryLimitOverrides["spend"] != 0.02 {
		t.Errorf("continuation %+v", got.Continuation)
	}
}

// corpus is a project of the original system.
func corpus(t *testing.T) resolve.Roots {
	t.Helper()
	root := os.Getenv("RYE_CORPUS")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	project := filepath.Join(root, "rye-workspace")
	if _, err := os.Stat(project); err != nil {
		t.Skip("no corpus")
	}
	return resolve.Roots{User: project, System: shipped()}
}

func assertNotUsedYet(t *testing.T, warnings []string, want int) {
	t.Helper()
	if len(warnings) != want {
		t.Errorf("%d warnings, want %d: %q", len(warnings), want, warnings)
	}
	for _, w := range warnings {
		if !strings.HasSuffix(w, ": not used yet") {
			t.Errorf("warning %q", w)
		}
	}
}

func TestMergeKeysAndAliases(t *testing.T) {
	t.Parallel()
	loader, _ := accepted(t, map[string]string{
		"project/agent/agent.yaml": "description: &base {orphans: keep}\nthreads:\n  <<: *base\n  term_seconds: 1\n",
	})
	got, _, err := loader.Read().Agent()
	if err != nil {
		t.Fatal(err)
	}
	if got.Threads.Orphans != config.OrphansKeep || got.Threads.TermSeconds != 1 {
		t.Errorf("got %+v", got.Threads)
	}
}

func TestSameUserAndProject(t *testing.T) {
	t.Parallel()
	_, roots := spaces(t, map[string]string{"project/agent/agent.yaml": "colour: red"})
	roots.User = roots.Project + string(filepath.Separator)
	_, warnings, err := config.New(roots).Read().Agent()
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 {
		t.Errorf("warnings %q, want one", warnings)
	}
}

func TestHigherLayerDecides(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		value := rapid.Ptr(rapid.IntRange(1, 1000), true)
		user, project := value.Draw(r, "user"), value.Draw(r, "project")
		files, want := map[string]string{}, 8192
		for i, v := range []*int{user, project} {
			if v != nil {
				files[[]string{"user", "project"}[i]+"/agent/agent.yaml"] = fmt.Sprintf("max_output_tokens: %d\n", *v)
				want = *v
			}
		}
		loader, _ := accepted(t, files)
		got, _, err := loader.Read().Agent()
		if err != nil {
			r.Fatal(err)
		}
		if got.MaxOutputTokens != want {
			r.Fatalf("got %d, want %d", got.MaxOutputTokens, want)
		}
	})
}

func FuzzAgent(f *testing.F) {
	f.Add("threads: {orphans: keep}")
	f.Add(originalCoordination)
	f.Add("a: &a [*a]\n? [x]\n: y\n<<: {b: !!binary x}")
	f.Fuzz(func(t *testing.T, content string) {
		agent, _, err := system(t, "agent/agent.yaml", content).Read().Agent()
		var e *config.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("error without file and line: %v", err)
		}
		if err == nil && agent.Threads.ToolConcurrency < 0 {
			t.Error("a value out of range passed the check")
		}
	})
}
