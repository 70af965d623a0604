package config_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

const rulesFile = "agent/error_classification.yaml"

func ids(rules config.ErrorRules) []string {
	var all []string
	for _, p := range rules.Patterns {
		all = append(all, p.ID)
	}
	return all
}

// TestShippedErrorRules: the shipped file holds to its schema, knows only
// categories there are and uses each.
func TestShippedErrorRules(t *testing.T) {
	t.Parallel()
	shippedText, err := os.ReadFile("../system/ai/config/agent/error_classification.yaml")
	if err != nil {
		t.Fatal(err)
	}
	loader, _ := spaces(t, map[string]string{"user/" + rulesFile: string(shippedText)})
	rules, warnings, err := loader.Read().ErrorRules()
	noWarnings(t, warnings, err)
	used := map[string]bool{}
	for _, p := range rules.Patterns {
		used[p.Category] = true
		if p.Match.Always() {
			t.Errorf("%s matches everything", p.ID)
		}
	}
	for _, category := range []string{
		config.CategoryRateLimited, config.CategoryTransient, config.CategoryPermanent, config.CategoryAuth, config.CategoryQuota,
		config.CategoryContext, config.CategoryRefusal, config.CategoryEmpty, config.CategoryUsage, config.CategoryCancelled,
	} {
		if !used[category] {
			t.Errorf("no pattern is %s", category)
		}
	}
	again, _, err := loaderOfShipped().Read().ErrorRules()
	if err != nil || !slices.Equal(ids(again), ids(rules)) {
		t.Errorf("as the user's %v, as shipped %v, %v", ids(rules), ids(again), err)
	}
	if d := rules.Default; d.Category != config.CategoryPermanent || d.Retryable {
		t.Errorf("default %+v", d)
	}
}

// originalRules has the forms that a file of the original system has.
const originalRules = `# rye:signed:2026-03-29T05:38:21Z:c5a5:zShV==:4b987f
category: "agent"
tool_type: "config"
version: "1.0.0"
description: "Patterns"
schema_version: "1.0.0"
patterns:
  - id: "quota_exhausted"
    name: "quota_exhausted"
    category: "permanent"
    retryable: false
    match:
      any:
        - path: "error.code"
          op: "in"
          value: ["insufficient_quota"]
        - path: "error.message"
          op: "regex"
          value: "exceeded your current quota"
  - id: "http_429"
    name: "rate_limited"
    category: "rate_limited"
    retryable: true
    match:
      all:
        - path: "status_code"
          op: "eq"
          value: 429
        - any:
            - path: "error.type"
              op: "in"
              value: ["rate_limit_error"]
    retry_policy:
      type: "use_header"
      header: "retry-after"
      fallback:
        type: "exponential"
        base: 2.0
        max: 60.0
  - id: "http_0_connection"
    name: "dropped"
    category: "transient"
    retryable: true
    match:
      path: "status_code"
      op: "eq"
      value: 0
    retry_policy:
      type: "exponential"
      base: 3.0
      max: 30.0
  - id: "http_5xx"
    category: "transient"
    retryable: true
    match: {path: "status_code", op: "in", value: [500, 502, 503, 504]}
default:
  category: "permanent"
  retryable: false
  retry_policy:
    type: "none"
operators:
  eq: { description: "Equal" }
combinators:
  any: { description: "Match if any child matches" }
retry_policy_types:
  fixed:
    parameters:
      delay: { type: number, default: 60.0 }
    formula: "delay"
  none:
    parameters: {}
    formula: "null"
`

// TestOriginalErrorRules loads the files of the original system as they are.
func TestOriginalErrorRules(t *testing.T) {
	t.Parallel()
	loader, _ := accepted(t, map[string]string{"project/" + rulesFile: originalRules})
	checkOriginal(t, loader)
}

func TestCorpusErrorRules(t *testing.T) {
	t.Parallel()
	checkOriginal(t, config.New(corpus(t)))
}

func checkOriginal(t *testing.T, loader *config.Loader) {
	t.Helper()
	rules, warnings, err := loader.Read().ErrorRules()
	noWarnings(t, warnings, err)
	for name, c := range map[string]struct {
		data map[string]any
		id   string
	}{
		"quota": {map[string]any{"status_code": 429, "error": map[string]any{"message": "you have exceeded your current quota"}}, "quota_exhausted"},
		"429":   {map[string]any{"status_code": 429, "error": map[string]any{"type": "rate_limit_error"}}, "http_429"},
		"cut":   {map[string]any{"status_code": 0, "error": map[string]any{"message": "x"}}, "http_0_connection"},
		"503":   {map[string]any{"status_code": 503}, "http_5xx"},
		"529":   {map[string]any{"status_code": 529}, "overloaded"}, // of the shipped ones, which remain
		"none":  {map[string]any{"status_code": 418}, "default"},
	} {
		if got := rules.Classify(c.data); got.ID != c.id {
			t.Errorf("%s: %s, want %s", name, got.ID, c.id)
		}
	}
	p := rules.Patterns[1]
	if p.Policy.Type != config.PolicyUseHeader || p.Policy.Header != "retry-after" || p.Policy.Fallback.Max != 60 || p.Policy.Fallback.Base != 2 {
		t.Errorf("%s: %+v", p.ID, p.Policy)
	}
}

// TestErrorRulesOfSpaces: a file holds only what it adds, and can replace a
// pattern by its id.
func TestErrorRulesOfSpaces(t *testing.T) {
	t.Parallel()
	loader, _ := accepted(t, map[string]string{
		"user/" + rulesFile: "patterns:\n  - {id: overloaded, category: quota, match: {path: status_code, op: eq, value: 529}}\n" +
			"  - {id: mine, category: quota, match: {path: status_code, op: eq, value: 418}}\n" +
			"default: {category: transient, retryable: true, retry_policy: {type: fixed}}\n",
		"project/" + rulesFile: "patterns:\n  - {id: mine, category: auth, retryable: true, match: {path: status_code, op: eq, value: 418}," +
			" retry_policy: {type: use_header, fallback: {type: exponential, max: 5}}}\n",
	})
	rules, warnings, err := loader.Read().ErrorRules()
	noWarnings(t, warnings, err)
	if got := ids(rules); got[0] != "mine" || got[1] != "overloaded" || got[2] != "cancelled" || strings.Count(strings.Join(got, " "), "overloaded") != 1 {
		t.Errorf("patterns %v", got)
	}
	mine := rules.Classify(map[string]any{"status_code": 418})
	if mine.Category != "auth" || mine.Policy.Header != "retry-after" || mine.Policy.Fallback.Base != 2 || mine.Policy.Fallback.Max != 5 {
		t.Errorf("%+v, %+v", mine, mine.Policy)
	}
	if got := rules.Classify(map[string]any{"status_code": 529}); got.Category != "quota" {
		t.Errorf("529: %s", got.Category)
	}
	if d := rules.Default; d.Category != "transient" || d.Policy.Delay != 60 {
		t.Errorf("default %+v", d)
	}
}

func TestBadErrorRules(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const start = "patterns:\n  - id: a\n    category: auth\n    match: {path: model, op: eq, value: x}\n"
	for name, c := range map[string]struct {
		text string
		line int // of the error, or 0
		says string
	}{
		"not a list":           {"patterns: 5\n", 1, "patterns"},
		"no id":                {"patterns:\n  - category: auth\n    match: {path: a, op: exists}\n", 2, "id"},
		"no match":             {"patterns:\n  - id: a\n    category: auth\n", 2, "match"},
		"unknown category":     {"patterns:\n  - id: a\n    category: atuh\n    match: {path: a, op: exists}\n", 3, "category"},
		"id given twice":       {start + "  - id: a\n    category: auth\n    match: {path: a, op: exists}\n", 5, "earlier pattern"},
		"unknown operator":     {"patterns:\n  - id: a\n    category: auth\n    match:\n      any:\n        - {path: a, op: exists}\n        - path: b\n          op: equals\n          value: 1\n", 8, "equals"},
		"bad expression":       {"patterns:\n  - id: a\n    category: auth\n    match: {path: a, op: regex, value: '('}\n", 4, "missing closing"},
		"negative wait":        {start + "    retry_policy:\n      type: fixed\n      delay: -1\n", 7, "delay"},
		"unknown policy":       {start + "    retry_policy: {type: soon}\n", 5, "type"},
		"wait that is text":    {start + "    retry_policy: {type: exponential, base: two}\n", 5, "base"},
		"policy that is text":  {start + "    retry_policy: none\n", 5, "retry_policy"},
		"retryable as text":    {start + "    retryable: 'yes'\n", 5, "retryable"},
		"default without kind": {"default: {retryable: true}\n", 1, "category"},
		"unknown key":          {start + "    retrieable: true\n", 0, `:5: patterns.0.retrieable: unknown key; did you mean "retryable"?`},
		"unknown key on top":   {"paterns: []\n", 0, `did you mean "patterns"?`},
		"key of another type":  {start + "    retry_policy: {type: fixed, base: 3}\n", 0, "fixed has no use for it"},
		"key of none, inside":  {start + "    retry_policy: {type: use_header, fallback: {type: none, delay: 3}}\n", 0, "none has no use for it"},
	} {
		loader, _ := accepted(t, map[string]string{"project/" + rulesFile: c.text})
		_, warnings, err := loader.Read().ErrorRules()
		var fault *config.Error
		switch {
		case c.line == 0:
			if err != nil || !strings.Contains(strings.Join(warnings, "\n"), c.says) {
				t.Errorf("%s: %q, %v", name, warnings, err)
			}
		case !errors.As(err, &fault) || fault.Line != c.line || !strings.Contains(fault.Reason, c.says):
			t.Errorf("%s: %v, want line %d and %q", name, err, c.line, c.says)
		}
	}
}
