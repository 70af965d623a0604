package config

import "github.com/rye-mcp/rye-mcp/spaces/item"

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

const riskFile = "agent/capability_risk.yaml"

func (l *Loader) riskSettings() (settings, error) {
	return l.load("capability_risk.schema.json", riskFile)
}

// Risk reads capability_risk.yaml. All the policies it returns hold, the
// strictest for each capability: the user's, which is the shipped one with the
// user's file on top, and the same with the project's file on top where there
// is one. A project may be somebody else's work: it may be stricter than its
// user, and whatever it says it cannot be laxer.
func (l *Loader) Risk() ([]Risk, []string, error) {
	s, err := l.riskSettings()
	if err != nil {
		return nil, s.warnings, err
	}
	all := s.layers
	if top := len(all) - 1; all[top].space == item.Project {
		s.layers = all[:top]
	}
	policies := make([]Risk, 1, 2)
	if err := s.decode(&policies[0]); err != nil {
		return nil, s.warnings, err
	}
	if len(s.layers) < len(all) {
		var project Risk
		s.layers = all
		if err := s.decode(&project); err != nil {
			return nil, s.warnings, err
		}
		policies = append(policies, project)
	}
	return policies, s.warnings, nil
}
