package config_test

import (
	"reflect"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/spaces/trust/trusttest"
)

// TestIntegrityOfLayers gives every layer a say in how strictly signatures are
// taken. Not even a project that its user has accepted makes them laxer.
func TestIntegrityOfLayers(t *testing.T) {
	t.Parallel()
	const off = "integrity: {mode: off, accept_legacy_directives: true, accept_legacy: [directive]}\n"
	strict := trust.Settings{Mode: trust.Strict, AcceptLegacy: []string{}}
	none := trust.Settings{Mode: trust.Off, AcceptLegacy: []string{"directive"}, AcceptLegacyDirectives: true}
	for name, tt := range map[string]struct {
		user, project string
		want          trust.Settings
		leftOut       int
	}{
		"nobody":          {want: strict},
		"project":         {project: off, want: strict, leftOut: 3},
		"project, partly": {project: "integrity: {mode: warn}\n", want: strict, leftOut: 1},
		"project accepts": {project: "integrity: {accept_legacy: [directive]}\n", want: strict, leftOut: 1},
		"user":            {user: off, want: none},
		"user, partly":    {user: "integrity: {accept_legacy_directives: true}\n", want: trust.Settings{Mode: trust.Strict, AcceptLegacy: []string{}, AcceptLegacyDirectives: true}},
		"stricter": {user: off, project: "integrity: {mode: warn, accept_legacy_directives: false}\n",
			want: trust.Settings{Mode: trust.Warn, AcceptLegacy: []string{"directive"}}},
		"project asks": {project: "risk: {ask: true}\n", want: strict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loader, roots := spaces(t, map[string]string{"user/agent/agent.yaml": tt.user, "project/agent/agent.yaml": tt.project})
			for range 2 {
				agent, warnings, err := loader.Read().Agent()
				if err != nil || !reflect.DeepEqual(agent.Integrity, tt.want) || len(warnings) > 0 {
					t.Errorf("got %+v, warnings %q, error %v", agent.Integrity, warnings, err)
				}
				if agent.RiskQuestions.Ask != (name == "project asks") {
					t.Errorf("risk.ask: %t", agent.RiskQuestions.Ask)
				}
				leftOut := loader.Read().LeftOut()
				for _, n := range leftOut {
					if !n.UserOnly {
						t.Errorf("%s", n)
					}
				}
				if len(leftOut) != tt.leftOut {
					t.Errorf("left out: %q", leftOut)
				}
				trusttest.AcceptSettings(t, roots) // and once more
			}
		})
	}
	loader, _ := spaces(t, map[string]string{"user/agent/agent.yaml": "integrity: {mode: lax}\n"})
	if got, err := loader.Read().Integrity(); err == nil || got.Mode != "" {
		t.Errorf("an unknown mode is taken for %+v", got)
	}
}
