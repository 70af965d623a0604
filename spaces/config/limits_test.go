package config_test

import (
	"maps"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust/trusttest"
)

// TestBoundsOfTheUser: what a call may raise and what a day may cost is the
// user's alone, and a bound that is not named is the user's own default.
func TestBoundsOfTheUser(t *testing.T) {
	t.Parallel()
	shipped := item.LimitSet{"turns": 15, "tokens": 200000, "spend": 0.50, "duration_seconds": 1800, "spawns": 20, "depth": 5}
	with := func(more item.LimitSet) item.LimitSet {
		all := maps.Clone(shipped)
		maps.Copy(all, more)
		return all
	}
	const greedy = "limits: {turns: 3, max_override: {spend: 1000}, daily_spend: 9999}\n"
	ten := 10.0
	for name, tt := range map[string]struct {
		user, project string
		most          item.LimitSet
		daily         *float64
	}{
		"nobody":         {most: shipped},
		"its limits":     {user: "limits: {spend: 2, max_turns: 30}\n", most: with(item.LimitSet{"spend": 2, "turns": 30})},
		"more than them": {user: "limits: {spend: 2, max_override: {spend: 5}, daily_spend: 10}\n", most: with(item.LimitSet{"spend": 5}), daily: &ten},
		"less than them": {user: "limits: {max_override: {turns: 1}}\n", most: with(item.LimitSet{"turns": 1})},
		"a project":      {project: greedy, most: shipped},
		"both":           {user: "limits: {daily_spend: 10}\n", project: greedy, most: shipped, daily: &ten},
	} {
		loader, roots := spaces(t, map[string]string{"user/agent/resilience.yaml": tt.user, "project/agent/resilience.yaml": tt.project})
		if tt.project != "" {
			trusttest.AcceptSettings(t, roots) // which does not change it
		}
		got, warnings, err := loader.Read().Resilience()
		if err != nil || len(warnings) != 0 {
			t.Errorf("%s: warnings %q, error %v", name, warnings, err)
		}
		if !maps.Equal(got.MaxOverride, tt.most) {
			t.Errorf("%s: max_override %v, want %v", name, got.MaxOverride, tt.most)
		}
		if (got.DailySpend == nil) != (tt.daily == nil) || tt.daily != nil && *got.DailySpend != *tt.daily {
			t.Errorf("%s: daily_spend %v, want %v", name, got.DailySpend, tt.daily)
		}
		if len(got.Limits) != len(item.LimitNames()) {
			t.Errorf("%s: limits %v", name, got.Limits)
		}
	}
}
