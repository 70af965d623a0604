package config

import "slices"

// Values of [RiskLevel.Policy].
const (
	RiskAllow       = "allow"
	RiskAcknowledge = "acknowledge_required" // a warning unless the directive accepts the tier
	RiskBlock       = "block"                // no thread unless the directive accepts the tier
)

// RiskTiers are the tiers of risk, least first.
func RiskTiers() []string { return []string{"safe", "write", "elevated", "unrestricted"} }

// Risk is config/agent/capability_risk.yaml: how dangerous capabilities are, and
// what follows from it for a directive that declares them.
type Risk struct {
	Levels          map[string]RiskLevel `yaml:"risk_levels"` // by tier
	Classifications []RiskClass          `yaml:"classifications"`
}

// RiskLevel is what holds for a tier.
type RiskLevel struct {
	Description string `yaml:"description"`
	Policy      string `yaml:"policy"`
}

// RiskClass puts capabilities into a tier.
type RiskClass struct {
	Risk        string   `yaml:"risk"`     // one of [RiskTiers]
	Patterns    []string `yaml:"patterns"` // of capabilities
	Description string   `yaml:"description"`
}

func (sn *Snapshot) riskSettings() (settings, error) { return sn.load(riskKind) }

// Risk reads capability_risk.yaml. All the policies it returns hold, the
// strictest for each capability: the user's, which is the shipped one with the
// user's file on top, and the same with each of the project's files on top where
// there are some: the one that the user has accepted, and the one that stands
// there. A project can be stricter than its user and cannot be
// laxer.
func (sn *Snapshot) Risk() ([]Risk, []string, error) { return sn.risk() }

func (sn *Snapshot) readRisk() ([]Risk, []string, error) {
	s, err := sn.riskSettings()
	if err != nil {
		return nil, s.warnings, err
	}
	own := s.layers[:s.own]
	tops, project := [][]layer{nil}, sn.project()
	for _, place := range []place{project.accepted, project.present} {
		if place == nil {
			continue
		}
		layers, err := sn.read(&settings{}, riskKind, place)
		if err != nil {
			return nil, s.warnings, err
		}
		if len(layers) > 0 {
			tops = append(tops, layers)
		}
	}
	policies := make([]Risk, len(tops))
	for i, top := range tops {
		policy := settings{layers: slices.Concat(own, top)}
		if err := policy.decode(&policies[i]); err != nil {
			return nil, s.warnings, err
		}
		if i > 0 {
			policies[i].withoutWords()
		}
	}
	return policies, s.warnings, nil
}

// withoutWords takes out of the policy of a project what it says about its patterns:
// models read that in warnings.
func (r *Risk) withoutWords() {
	for i := range r.Classifications {
		r.Classifications[i].Description = ""
	}
}
