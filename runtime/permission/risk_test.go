package permission

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// usual are the policies of the tiers as they are shipped.
func usual() map[string]config.RiskLevel {
	return map[string]config.RiskLevel{
		"safe": {Policy: config.RiskAllow}, "write": {Policy: config.RiskAllow},
		"elevated": {Policy: config.RiskAcknowledge}, "unrestricted": {Policy: config.RiskBlock},
	}
}

func class(tier string, patterns ...string) config.RiskClass {
	return config.RiskClass{Risk: tier, Patterns: patterns, Description: tier + " it is"}
}

func accept(tiers ...string) []item.Acknowledgement {
	var all []item.Acknowledgement
	for _, tier := range tiers {
		all = append(all, item.Acknowledgement{Risk: tier})
	}
	return all
}

func TestJudge(t *testing.T) {
	t.Parallel()
	policy := config.Risk{Levels: usual(), Classifications: []config.RiskClass{
		class("unrestricted", "rye.*"),
		class("elevated", "rye.execute.*", "rye.execute.tool.rye.bash"),
		class("write", "rye.execute.tool.rye.file-system.*", "rye.execute.tool.acme.*"),
		class("safe", "rye.fetch.*", "rye.execute.tool.rye.file-system.read"),
		class("unrestricted", "rye.execute.tool.acme.wipe"),
		class("safe", "rye.execute.tool.tie.a?c"),
		class("elevated", "rye.execute.tool.tie.a*c"),
	}}
	for name, c := range map[string]struct {
		capability string
		accepted   []item.Acknowledgement
		tier       string // empty: nothing is found
		blocks     bool
	}{
		"one call":                           {capability: "rye.execute.tool.rye.bash", tier: "elevated"},
		"one call, accepted":                 {capability: "rye.execute.tool.rye.bash", accepted: accept("elevated")},
		"accepted by a higher tier":          {capability: "rye.execute.tool.rye.bash", accepted: accept("unrestricted")},
		"a lower tier accepts nothing":       {capability: "rye.execute.tool.rye.bash", accepted: accept("safe", "write"), tier: "elevated"},
		"an unknown tier accepts nothing":    {capability: "rye.execute.tool.rye.bash", accepted: accept("ELEVATED", "all"), tier: "elevated"},
		"the more specific pattern wins":     {capability: "rye.execute.tool.rye.file-system.write"},
		"the most specific pattern wins":     {capability: "rye.execute.tool.rye.file-system.read"},
		"everything":                         {capability: "rye.*", tier: "unrestricted", blocks: true},
		"everything, accepted":               {capability: "rye.*", accepted: accept("unrestricted")},
		"everything, too little accepted":    {capability: "rye.*", accepted: accept("elevated"), tier: "unrestricted", blocks: true},
		"a pattern as broad as a class":      {capability: "rye.execute.tool.rye.file-system.*"},
		"a pattern narrower than a class":    {capability: "rye.execute.tool.rye.file-system.w*"},
		"a pattern broader than a class":     {capability: "rye.execute.tool.rye.*", tier: "elevated"},
		"a pattern that lets a graver in":    {capability: "rye.execute.tool.acme.*", tier: "unrestricted", blocks: true},
		"a pattern that leaves it out":       {capability: "rye.execute.tool.acme.re*"},
		"what no pattern matches":            {capability: "acme.do", tier: "unrestricted", blocks: true},
		"what is only partly matched":        {capability: "*", tier: "unrestricted", blocks: true},
		"search is fetch":                    {capability: "rye.search.knowledge.*"},
		"of equally specific the graver one": {capability: "rye.execute.tool.tie.abc", tier: "elevated"},
		"only one of the equally specific":   {capability: "rye.execute.tool.tie.abbc", tier: "elevated"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Judge([]config.Risk{policy}, []string{c.capability}, c.accepted)
			if c.tier == "" {
				if len(got) > 0 {
					t.Errorf("found %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Tier != c.tier || got[0].Blocks() != c.blocks || got[0].Capability != c.capability || got[0].Reason == "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestJudgeOrder(t *testing.T) {
	t.Parallel()
	policy := config.Risk{Levels: usual(), Classifications: []config.RiskClass{class("unrestricted", "x*"), class("elevated", "y*"), class("safe", "z")}}
	var got []string
	for _, f := range Judge([]config.Risk{policy}, []string{"z", "y1", "x1", "y2", "x2"}, nil) {
		got = append(got, f.Capability)
	}
	if want := []string{"x1", "x2", "y1", "y2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Policies are what the settings say, and not what the tiers are called.
func TestJudgePolicies(t *testing.T) {
	t.Parallel()
	odd := config.Risk{
		Levels: map[string]config.RiskLevel{
			"safe": {Policy: config.RiskBlock}, "write": {Policy: config.RiskAllow}, "elevated": {Policy: config.RiskAllow},
		},
		Classifications: []config.RiskClass{class("elevated", "a*"), class("safe", "ab"), class("unrestricted", "b")},
	}
	for _, c := range []struct {
		capability string
		tier       string
	}{{"a*", "safe"}, {"ac", ""}, {"ab", "safe"}, {"b", "unrestricted"}} { // the last has no policy: nobody has allowed it
		got := Judge([]config.Risk{odd}, []string{c.capability}, nil)
		if c.tier == "" && len(got) > 0 || c.tier != "" && (len(got) != 1 || got[0].Tier != c.tier || !got[0].Blocks()) {
			t.Errorf("%s: %+v", c.capability, got)
		}
	}
}

func classes() *rapid.Generator[[]config.RiskClass] {
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) config.RiskClass {
		return config.RiskClass{Risk: rapid.SampledFrom(config.RiskTiers()).Draw(rt, "tier"), Patterns: sets().Draw(rt, "patterns")}
	}), 0, 4)
}

// riskOf is the definition of the tier of one call: the most specific pattern
// decides, and of equally specific ones the graver.
func riskOf(policy config.Risk, call string) int {
	risk, most := len(config.RiskTiers())-1, -1
	for _, class := range policy.Classifications {
		for _, pattern := range class.Patterns {
			if !means(pattern, call) {
				continue
			}
			switch s := specificity(pattern); {
			case s > most:
				risk, most = rank(class.Risk), s
			case s == most:
				risk = max(risk, rank(class.Risk))
			}
		}
	}
	return risk
}

// A capability is never judged to be less than the gravest call it allows, and a
// single call is judged exactly.
func TestJudgeIsNeverTooMild(t *testing.T) {
	t.Parallel()
	texts := words(letters, 5)
	levels := map[string]config.RiskLevel{"safe": {Policy: config.RiskAllow}}
	for _, tier := range config.RiskTiers()[1:] {
		levels[tier] = config.RiskLevel{Policy: config.RiskBlock}
	}
	rapid.Check(t, func(rt *rapid.T) {
		policy := config.Risk{Levels: levels, Classifications: classes().Draw(rt, "classes")}
		capability := rapid.StringMatching(`[ab*?]{0,4}`).Draw(rt, "capability")
		judged := 0
		for _, f := range Judge([]config.Risk{policy}, []string{capability}, nil) {
			judged = rank(f.Tier)
		}
		for _, call := range texts {
			if means(capability, call) && judged < riskOf(policy, call) {
				rt.Fatalf("%q is judged %d and allows %q, which is %d", capability, judged, call, riskOf(policy, call))
			}
			if capability == call && judged != riskOf(policy, call) {
				rt.Fatalf("%q is judged %d and is %d", call, judged, riskOf(policy, call))
			}
		}
	})
}

// One more policy can make the outcome stricter and nothing else.
func TestMorePoliciesAreNeverLaxer(t *testing.T) {
	t.Parallel()
	policy := rapid.Custom(func(rt *rapid.T) config.Risk {
		levels := map[string]config.RiskLevel{}
		for _, tier := range config.RiskTiers() {
			levels[tier] = config.RiskLevel{Policy: rapid.SampledFrom([]string{
				config.RiskAllow, config.RiskAcknowledge, config.RiskBlock,
			}).Draw(rt, tier)}
		}
		return config.Risk{Levels: levels, Classifications: classes().Draw(rt, "classes")}
	})
	rapid.Check(t, func(rt *rapid.T) {
		user, project := policy.Draw(rt, "user"), policy.Draw(rt, "project")
		capabilities := []string{rapid.StringMatching(`[ab*?]{0,4}`).Draw(rt, "capability")}
		accepted := accept(rapid.SampledFrom(append(config.RiskTiers(), "")).Draw(rt, "accepted"))
		most := func(policies ...config.Risk) int {
			outcome := 0
			for _, f := range Judge(policies, capabilities, accepted) {
				outcome = severity(f.Policy)
			}
			return outcome
		}
		if got, want := most(user, project), max(most(user), most(project)); got != want {
			rt.Fatalf("both together %d, the stricter %d", got, want)
		}
	})
}
