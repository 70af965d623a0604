package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/permission"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// checkCapabilities finds patterns that no item matches, and those that are of
// no use.
func checkCapabilities(l *list, d *directive) {
	for _, primary := range []string{permission.Execute, permission.Fetch, permission.Search, permission.Sign} {
		for _, kind := range item.Kinds() {
			for e := range d.at("metadata/permissions/" + primary + "/" + string(kind)) {
				d.checkPattern(l, e.Line, primary, kind, dotted(e.Text))
			}
		}
	}
}

func (d *directive) checkPattern(l *list, line int, primary string, kind item.Kind, pattern string) {
	ids := d.ids()[kind]
	grant := permission.Grant{Own: []string{"rye." + primary + "." + string(kind) + "." + pattern}}
	matching := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		return !grant.Allows(permission.Required(primary, kind, id))
	})
	switch {
	case len(matching) == 0:
		d.unmatched = append(d.unmatched, grant.Own[0])
		l.warnf(CodeCapabilityUnmatched, line, nearestPattern(pattern, ids), "<%s><%s>%s matches no %s of any space", primary, kind, pattern, kind)
	case primary == permission.Sign && !strings.ContainsAny(pattern, "*?") && d.onlySystem(kind, matching[0]):
		l.warnf(CodeCapabilityIdle, line, "", "<%s><%s>%s has no effect: items of the system space cannot be signed", primary, kind, pattern)
	}
}

func (d *directive) onlySystem(kind item.Kind, id string) bool {
	found, err := d.Resolver.Find(kind, id)
	return err == nil && found.Space == item.System
}

// nearestPattern proposes an id or a folder for a pattern that matches nothing.
func nearestPattern(pattern string, ids []string) string {
	var candidates []string
	for _, id := range ids {
		candidates = append(candidates, dotted(id))
		for i, c := range id {
			if c == '/' {
				candidates = append(candidates, dotted(id[:i])+".*")
			}
		}
	}
	if near := item.Nearest(pattern, candidates); near != "" {
		return meant(near)
	}
	// Another folder, or none at all.
	last := pattern[strings.LastIndex(pattern, ".")+1:]
	for _, id := range ids {
		if last != "*" && (id == last || strings.HasSuffix(id, "/"+last)) {
			return meant(dotted(id))
		}
	}
	return ""
}

// checkRisk judges the capabilities the way a start does.
func checkRisk(l *list, d *directive) {
	i := 0 // the elements are the acknowledgements, in the same order
	for e := range d.at("metadata/permissions/acknowledge") {
		if risk := d.doc.Permissions.Acknowledged[i].Risk; !slices.Contains(config.RiskTiers(), risk) {
			l.warnf(CodeRiskUnknown, e.Line, "the tiers are "+strings.Join(config.RiskTiers(), ", "), "<acknowledge risk=%q> accepts nothing", risk)
		}
		i++
	}
	for _, f := range permission.Judge(d.risk, d.permissions.Capabilities, d.permissions.Acknowledged) {
		line := d.capabilityLine(f.Capability)
		try := fmt.Sprintf("add <acknowledge risk=%q>why it is needed</acknowledge> to the <permissions> of %s", f.Tier, d.granter)
		if d.found.Detached != nil {
			try = fmt.Sprintf("a person accepts the risk %s when signing %s, see rye/guides/claude-agents", f.Tier, d.found.ID)
		}
		if f.Blocks() {
			l.errorf(CodeRiskBlocked, line, try, "the capability %s has the risk %s, which is blocked", f.Capability, f.Tier)
		} else if !slices.Contains(d.unmatched, f.Capability) { // one that matches nothing is to be mended, and not to be accepted
			l.warnf(CodeRiskUnacknowledged, line, try, "the capability %s has the risk %s, which nobody has accepted", f.Capability, f.Tier)
		}
	}
}

// capabilityLine is where a capability is declared, else the line of all
// permissions; that of the root when they are inherited.
func (d *directive) capabilityLine(capability string) int {
	sibling := strings.Replace(capability, "rye.search.", "rye.fetch.", 1)
	for _, e := range d.outline.Elements {
		below, ok := strings.CutPrefix(e.Path, "metadata/permissions/")
		if declared := "rye." + dotted(below) + "." + dotted(e.Text); ok && (declared == capability || declared == sibling) {
			return e.Line
		}
	}
	return d.line("metadata/permissions")
}
