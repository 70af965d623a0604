package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// JudgeRisk refuses a directive that declares, or inherits from what it extends,
// more than the settings let any thread have without its author accepting the
// risk, and warns of what should be accepted and is not. Capabilities that come
// from the parent were judged where they were declared, and those that no ancestor
// allows have no effect.
func (c *Call) JudgeRisk(p *Plan) error {
	declared := p.Permissions
	if len(declared.Capabilities) == 0 {
		return nil
	}
	policies, warnings, err := c.Config.Risk()
	if err != nil {
		return err
	}
	p.Warnings = append(p.Warnings, warnings...)
	p.Warnings = append(p.Warnings, unknownTiers(declared.Acknowledged)...)
	effective := slices.DeleteFunc(slices.Clone(p.Grant.Own), func(capability string) bool {
		return slices.Contains(p.Dropped, capability)
	})
	for _, f := range permission.Judge(policies, p.Dropped, declared.Acknowledged) {
		p.DroppedWhy[f.Capability] += fmt.Sprintf("; besides, its risk is %s and not acknowledged", f.Tier)
	}
	for _, f := range permission.Judge(policies, effective, declared.Acknowledged) {
		if f.Blocks() {
			return p.blocked(f)
		}
		p.risks = append(p.risks, risk{Finding: f, warning: len(p.Warnings)})
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s; %s", risky(p.composed.PermissionsFrom, f), p.accepting(f)))
	}
	return nil
}

// risk is one that was found and is only warned of.
type risk struct {
	permission.Finding
	warning int // its place in the warnings of the plan
}

// ConfirmRisk asks the person about the risks that a start is only warned of,
// where the user wants that and the client can ask. An accepted one is recorded
// as accepted, in place of its warning. Starts by a thread are not asked about:
// there is no person in reach.
func (c *Call) ConfirmRisk(ctx context.Context, p *Plan) error {
	if len(p.risks) == 0 || p.Caller.Ask == nil || p.Request.Parent != "" {
		return nil
	}
	agent, _, err := c.Config.Agent()
	if err != nil {
		return threads.Fault(err)
	}
	if !agent.RiskQuestions.Ask {
		return nil
	}
	answer, err := p.Caller.Ask(ctx, riskQuestion(p))
	switch {
	case errors.Is(err, action.ErrNobodyToAsk):
		return nil
	case errors.Is(err, action.ErrCallAgain):
		return err
	case err != nil:
		return tool.Faultf(tool.CodePermissionDenied, "the person could not be asked about the risk of directive %s: %w", p.Found.ID, err).
			WithHint("start it again, or have its author accept the risk in its <permissions>")
	case answer.Decision != thread.Accept:
		return p.declined(p.risks[0].Finding)
	}
	for _, r := range p.risks {
		p.Warnings[r.warning] = fmt.Sprintf("%s; accepted by %s", risky(p.composed.PermissionsFrom, r.Finding), answer.By)
	}
	return nil
}

func riskQuestion(p *Plan) thread.Question {
	var b strings.Builder
	fmt.Fprintf(&b, "Start directive %s, although nobody has accepted what it may do?", p.Found.ID)
	for _, r := range p.risks {
		fmt.Fprintf(&b, "\n- %s", risky(p.composed.PermissionsFrom, r.Finding))
	}
	return thread.Question{
		Kind: thread.AskRisk, Code: p.risks[0].Tier, Text: b.String(),
		Options: []thread.Decision{thread.Accept, thread.Decline}, Default: thread.Decline,
	}
}

// declined is the refusal of a start by the person.
func (p *Plan) declined(f permission.Finding) *tool.Fault {
	return tool.Faultf(tool.CodePermissionDenied, "%s, which the person has declined; to accept it for good, %s",
		risky(p.composed.PermissionsFrom, f), p.accepting(f)).
		With("capability", f.Capability).With("risk", f.Tier).
		WithHint("do the work without this directive, or declare narrower capabilities")
}

// blocked is the refusal of a start. Its message alone says what to do: it is
// what stays of a fault in results and logs.
func (p *Plan) blocked(f permission.Finding) *tool.Fault {
	return tool.Faultf(tool.CodePermissionDenied, "%s, which is blocked; to accept it, %s",
		risky(p.composed.PermissionsFrom, f), p.accepting(f)).
		With("capability", f.Capability).With("risk", f.Tier).
		WithHint("declare narrower capabilities, or have a person accept the risk in the directive")
}

// risky says what is risky about a directive, and why.
func risky(directive string, f permission.Finding) string {
	why := strings.TrimSpace(f.Reason)
	if why != "" {
		why = " (" + why + ")"
	}
	return fmt.Sprintf("directive %s declares %s, whose risk is %s%s", directive, item.Shown(f.Capability), f.Tier, why)
}

// accepting is how a person accepts a risk for good.
func (p *Plan) accepting(f permission.Finding) string {
	if p.Found != nil && p.Found.Detached != nil && p.composed.PermissionsFrom == p.Found.ID {
		return fmt.Sprintf("a person can accept it when signing it (--acknowledge %s)", f.Tier)
	}
	return fmt.Sprintf("add <acknowledge risk=%q>why it is needed</acknowledge> to its <permissions>", f.Tier)
}

// unknownTiers warns of acknowledgements that accept nothing.
func unknownTiers(accepted []item.Acknowledgement) []string {
	var warnings []string
	for _, a := range accepted {
		if !slices.Contains(config.RiskTiers(), a.Risk) {
			warnings = append(warnings, fmt.Sprintf("<acknowledge risk=%q> accepts nothing; the tiers are %s",
				item.Shown(a.Risk), strings.Join(config.RiskTiers(), ", ")))
		}
	}
	return warnings
}
