package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// judgeRisk refuses a directive that declares more than the settings let any
// thread have without its author accepting the risk, and warns of what should
// be accepted and is not. Capabilities that come from the parent were judged
// where they were declared, and those that no ancestor allows have no effect.
func (c *Controller) judgeRisk(p *plan) error {
	declared := p.doc.Permissions
	if len(declared.Capabilities) == 0 {
		return nil
	}
	policies, warnings, err := c.Config.Risk()
	if err != nil {
		return err
	}
	p.warnings = append(p.warnings, warnings...)
	p.warnings = append(p.warnings, unknownTiers(declared.Acknowledged)...)
	effective := slices.DeleteFunc(slices.Clone(p.grant.Own), func(capability string) bool {
		return slices.Contains(p.dropped, capability)
	})
	for _, f := range permission.Judge(policies, effective, declared.Acknowledged) {
		if f.Blocks() {
			return blocked(p.found.ID, f)
		}
		p.warnings = append(p.warnings, fmt.Sprintf("%s; add %s to its <permissions>", risky(p.found.ID, f), acknowledgeTag(f)))
	}
	return nil
}

// blocked is the refusal of a start. Its message alone says what to do: it is
// what stays of a fault in results and logs.
func blocked(directive string, f permission.Finding) *tool.Fault {
	return tool.Faultf(tool.CodePermissionDenied, "%s, which is blocked; to accept it, add %s to its <permissions>",
		risky(directive, f), acknowledgeTag(f)).
		With("capability", f.Capability).With("risk", f.Tier).
		WithHint("declare narrower capabilities, or have a person accept the risk in the directive")
}

// risky says what is risky about a directive, and why.
func risky(directive string, f permission.Finding) string {
	why := strings.TrimSpace(f.Reason)
	if why != "" {
		why = " (" + why + ")"
	}
	return fmt.Sprintf("directive %s declares %s, whose risk is %s%s", directive, f.Capability, f.Tier, why)
}

func acknowledgeTag(f permission.Finding) string {
	return fmt.Sprintf("<acknowledge risk=%q>why it is needed</acknowledge>", f.Tier)
}

// unknownTiers warns of acknowledgements that accept nothing.
func unknownTiers(accepted []item.Acknowledgement) []string {
	var warnings []string
	for _, a := range accepted {
		if !slices.Contains(config.RiskTiers(), a.Risk) {
			warnings = append(warnings, fmt.Sprintf("<acknowledge risk=%q> accepts nothing; the tiers are %s",
				a.Risk, strings.Join(config.RiskTiers(), ", ")))
		}
	}
	return warnings
}
