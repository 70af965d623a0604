package config_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/config"
)

func TestShippedRisk(t *testing.T) {
	t.Parallel()
	policies, warnings, err := loaderOfShipped().Read().Risk()
	noWarnings(t, warnings, err)
	if len(policies) != 1 {
		t.Fatalf("%d policies", len(policies))
	}
	want := map[string]string{
		"safe": config.RiskAllow, "write": config.RiskAllow,
		"elevated": config.RiskAcknowledge, "unrestricted": config.RiskBlock,
	}
	for _, tier := range config.RiskTiers() {
		if level := policies[0].Levels[tier]; level.Policy != want[tier] || level.Description == "" {
			t.Errorf("%s: %+v", tier, level)
		}
	}
	for _, class := range policies[0].Classifications {
		if len(class.Patterns) == 0 || class.Description == "" || !slices.Contains(config.RiskTiers(), class.Risk) {
			t.Errorf("%+v", class)
		}
	}
}

// A project's file makes a policy of its own beside the user's, which it does
// not change.
func TestRiskOfTheProjectStandsBesideTheUsers(t *testing.T) {
	t.Parallel()
	const (
		user    = "risk_levels: {elevated: {policy: block}}\n"
		project = "risk_levels: {elevated: {policy: allow}, write: {policy: block}}\nclassifications: [{risk: safe, patterns: ['rye.*']}]\n"
	)
	loader, _ := spaces(t, map[string]string{"user/agent/capability_risk.yaml": user, "project/agent/capability_risk.yaml": project})
	policies, warnings, err := loader.Read().Risk()
	noWarnings(t, warnings, err)
	if len(policies) != 2 {
		t.Fatalf("%d policies", len(policies))
	}
	for i, want := range []struct {
		elevated, write string
		classes         bool // the shipped ones
	}{{"block", "allow", true}, {"allow", "block", false}} {
		got := policies[i]
		if got.Levels["elevated"].Policy != want.elevated || got.Levels["write"].Policy != want.write ||
			got.Levels["unrestricted"].Policy != "block" || (len(got.Classifications) > 1) != want.classes {
			t.Errorf("policy %d: %+v", i, got)
		}
	}
	onlyUser, _ := spaces(t, map[string]string{"user/agent/capability_risk.yaml": user})
	if policies, _, err := onlyUser.Read().Risk(); err != nil || len(policies) != 1 || policies[0].Levels["elevated"].Policy != "block" {
		t.Errorf("%+v, %v", policies, err)
	}
}

// The keys that files of the original system have are read without a warning.
func TestRiskFileOfTheOriginal(t *testing.T) {
	t.Parallel()
	const file = `# rye:signed:2026-01-02T03:04:05Z:00:00:00
category: "agent"
tool_type: "config"
version: "1.0.0"
description: "Risk"
schema_version: "1.0.0"
risk_levels:
  unrestricted: {description: "Everything", policy: block}
classifications:
  - risk: elevated
    patterns:
      - "rye.execute.tool.rye.web.*"
    description: "The web"
`
	loader, _ := spaces(t, map[string]string{"user/agent/capability_risk.yaml": file})
	policies, warnings, err := loader.Read().Risk()
	noWarnings(t, warnings, err)
	if classes := policies[0].Classifications; len(classes) != 1 || classes[0].Risk != "elevated" || classes[0].Patterns[0] != "rye.execute.tool.rye.web.*" {
		t.Errorf("%+v", classes)
	}
}

func TestRiskFileIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, reason string }{
		"policy":           {"risk_levels: {safe: {policy: ask}}\n", "risk_levels.safe.policy"},
		"tier":             {"classifications:\n  - {risk: deadly, patterns: [a]}\n", "classifications.0.risk"},
		"no tier":          {"classifications:\n  - {patterns: [a]}\n", "risk"},
		"no patterns":      {"classifications:\n  - {risk: safe}\n", "patterns"},
		"pattern is empty": {"classifications:\n  - {risk: safe, patterns: ['']}\n", "classifications.0.patterns.0"},
		"space in pattern": {"classifications:\n  - {risk: safe, patterns: ['rye.* ']}\n", "classifications.0.patterns.0"},
		"not YAML":         {"risk_levels: {", "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A project's file that cannot be read is no reason to do without it.
			loader, roots := spaces(t, map[string]string{"project/agent/capability_risk.yaml": c.file})
			policies, _, err := loader.Read().Risk()
			invalid, ok := errors.AsType[*config.Error](err)
			if !ok || len(policies) > 0 || !strings.Contains(invalid.Reason, c.reason) ||
				invalid.Path != filepath.Join(roots.Project, ".ai", "config", "agent", "capability_risk.yaml") {
				t.Errorf("%+v, %v", policies, err)
			}
		})
	}
	loader, _ := spaces(t, map[string]string{"project/agent/capability_risk.yaml": "risk_level: {}\n"})
	if _, warnings, err := loader.Read().Risk(); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], `did you mean "risk_levels"`) {
		t.Errorf("%q, %v", warnings, err)
	}
}
