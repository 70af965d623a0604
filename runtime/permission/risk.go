package permission

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Finding is a capability whose risk nobody has accepted.
type Finding struct {
	Capability string
	Tier       string // one of [config.RiskTiers]
	Policy     string // config.RiskAcknowledge or config.RiskBlock
	Reason     string // what the settings say about it; may be empty
}

// Blocks reports whether a thread with this capability may not run.
func (f Finding) Blocks() bool { return f.Policy != config.RiskAcknowledge }

// Judge finds the capabilities that are riskier than accepted, those that block
// first. A tier is accepted together with those below it. When several policies
// are given each of them holds, so that one more can only add findings.
func Judge(policies []config.Risk, capabilities []string, accepted []item.Acknowledgement) []Finding {
	var findings []Finding
	top := highest(accepted)
	for _, capability := range capabilities {
		worst := Finding{Policy: config.RiskAllow}
		for _, policy := range policies {
			for _, f := range reached(policy, capability) {
				if rank(f.Tier) > top && graver(f, worst) {
					worst = f
				}
			}
		}
		if severity(worst.Policy) > 0 {
			findings = append(findings, worst)
		}
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(severity(b.Policy), severity(a.Policy)) })
	return findings
}

// reached lists the tiers of the calls that a capability allows. The tier of a
// call is that of the most specific pattern that matches it, and of equally
// specific ones the graver. So the pattern that matches everything the
// capability allows rules out all less specific ones, and any other that
// overlaps with the capability decides about some of its calls.
func reached(policy config.Risk, capability string) []Finding {
	forms := withSibling(capability)
	least := -1 // the specificity of the most specific pattern that covers the capability
	for _, class := range policy.Classifications {
		for _, pattern := range class.Patterns {
			if slices.ContainsFunc(forms, func(form string) bool { return covers(pattern, form) }) {
				least = max(least, specificity(pattern))
			}
		}
	}
	var found []Finding
	if least < 0 {
		found = append(found, finding(policy, capability, unclassified()))
	}
	for _, class := range policy.Classifications {
		if slices.ContainsFunc(class.Patterns, func(pattern string) bool {
			return specificity(pattern) >= least && overlapsAny([]string{pattern}, forms)
		}) {
			found = append(found, finding(policy, capability, class))
		}
	}
	return found
}

// unclassified is what holds for calls that no pattern matches: nobody has said
// that they are harmless.
func unclassified() config.RiskClass {
	tiers := config.RiskTiers()
	return config.RiskClass{Risk: tiers[len(tiers)-1], Description: "No classification covers it"}
}

func finding(policy config.Risk, capability string, class config.RiskClass) Finding {
	return Finding{
		Capability: capability, Tier: class.Risk, Policy: policy.Levels[class.Risk].Policy, Reason: class.Description,
	}
}

// specificity is the number of bytes in a pattern that are no wildcard.
func specificity(pattern string) int {
	return len(pattern) - strings.Count(pattern, "*") - strings.Count(pattern, "?")
}

// highest is the rank of the riskiest tier that is accepted; below all ranks
// when none is.
func highest(accepted []item.Acknowledgement) int {
	top := -1
	for _, a := range accepted {
		top = max(top, slices.Index(config.RiskTiers(), a.Risk))
	}
	return top
}

// rank orders tiers by risk; one that is not known is above all others.
func rank(tier string) int {
	tiers := config.RiskTiers()
	if i := slices.Index(tiers, tier); i >= 0 {
		return i
	}
	return len(tiers)
}

// graver compares what two findings mean for a thread, and of equal ones their
// tiers.
func graver(a, b Finding) bool {
	return cmp.Or(cmp.Compare(severity(a.Policy), severity(b.Policy)), cmp.Compare(rank(a.Tier), rank(b.Tier))) > 0
}

// severity orders policies; one that is not known blocks.
func severity(policy string) int {
	switch policy {
	case config.RiskAllow:
		return 0
	case config.RiskAcknowledge:
		return 1
	default:
		return 2
	}
}
