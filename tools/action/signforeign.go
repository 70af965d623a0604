package action

import (
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/itemfile"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// signForeign signs an item of another program, whose file stays as it is: what is
// signed is a list of its files, in a document below .ai/signatures. The result tells
// the capabilities that it comes to, and why no thread is started by it.
func (a *Actions) signForeign(e resolve.Entry, key *sign.Key, accepted []string) (told SignedItem, err error) {
	found, err := a.Resolver.In(e.Space).Find(e.Kind, e.ID)
	if err != nil {
		return told, err
	}
	switch {
	case found.Path != e.Path:
		return told, tool.Faultf(tool.CodeUnsupported, "%s hides %s", found.Path, e.Path)
	case e.Kind != item.Directive:
		return told, tool.Faultf(tool.CodeUnsupported, "the files of a skill are signed together").
			WithHint("Sign the directive %s.", found.Detached.ID)
	case found.Detached.Problem != "":
		return told, tool.Faultf(tool.CodeUnsupported, "%s cannot be signed: %s", e.Path, found.Detached.Problem)
	}
	for _, tier := range accepted {
		if !slices.Contains(config.RiskTiers(), tier) {
			return told, tool.Faultf(tool.CodeBadArguments, "%q is no tier of risk", tier).WithHint("The tiers are %v.", config.RiskTiers())
		}
	}
	doc, err := found.Directive()
	if err != nil {
		return told, err
	}
	name := sign.Name{Kind: sign.KindForeign, ID: e.ID}
	signed, err := sign.Attach(found.Detached.Document(accepted...), resolve.Extension, name, key, a.Now())
	if err != nil {
		return told, err
	}
	told.May, told.Notes = doc.Permissions.Capabilities, stops(doc, e.ID)
	return told, taken(itemfile.PutSignature(a.dirOf(e.Space), e.Kind, e.ID, signed))
}
