package action

import (
	"encoding/json"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Permits refuses a call of a primary action for which c lacks a capability, as the action
// does, and makes no call. It is nil where the action alone can tell: of another project, of
// arguments that it does not take, and of patterns and paths to sign. The kind of a bare id
// is that of the item in spaces.
func Permits(c Caller, spaces *resolve.Resolver, name string, args json.RawMessage) error {
	switch name {
	case "rye_execute":
		if r, ok := accepted[ExecuteRequest](name, args); ok && r.ProjectPath == "" {
			return permitExecute(c, spaces, r)
		}
	case "rye_fetch":
		r, ok := accepted[FetchRequest](name, args)
		switch {
		case !ok, r.ProjectPath != "", (r.ItemID == "") == (r.Query == ""):
		case r.Query != "":
			return permitSearch(c, "fetch", scopeOf(r))
		default:
			return permitItem(c, inSource(spaces, r.Source), "fetch", r.ItemType, r.ItemID)
		}
	case "rye_search":
		if r, ok := accepted[SearchRequest](name, args); ok && r.ProjectPath == "" {
			return permitSearch(c, "search", r.Scope)
		}
	case "rye_sign":
		r, ok := accepted[SignRequest](name, args)
		if ok && r.ProjectPath == "" && !IsPath(r.ItemID) && !strings.ContainsAny(r.ItemID, patternRunes) {
			return permitItem(c, inSource(spaces, r.Source), "sign", r.ItemType, r.ItemID)
		}
	}
	return nil
}

// accepted are the arguments of a call as the action takes them.
func accepted[Request any](name string, args json.RawMessage) (r Request, ok bool) {
	r, err := tool.Decoder[Request](name, tool.SchemaFor[Request])(args)
	return r, err == nil
}

func permitExecute(c Caller, spaces *resolve.Resolver, r ExecuteRequest) error {
	asTool := r.ItemType == "" || r.ItemType == string(item.Tool)
	switch {
	case r.ResumeThreadID != "", asTool && r.ItemID == OrchestratorID:
		return permit(c, capability("execute", item.Tool, OrchestratorID))
	case asTool && r.ItemID == ThreadDirectiveID:
		if p, ok := accepted[ThreadDirectiveRequest](ThreadDirectiveID, r.Parameters.Raw()); ok {
			return permitItem(c, spaces, "execute", string(item.Directive), p.DirectiveID)
		}
		return nil
	case r.ItemID == "", asTool && r.ItemID == DirectiveReturnID, r.ItemType == string(item.Tool) && r.ItemID == ThreadSummaryID:
		return nil
	}
	return permitItem(c, spaces, "execute", r.ItemType, r.ItemID)
}

// permitItem refuses an item as [Actions.find] does, and says nothing of one that is not
// there.
func permitItem(c Caller, spaces *resolve.Resolver, action, itemType, id string) error {
	kind, err := permitBefore(c, action, itemType, id)
	if err != nil || kind != "" {
		return err
	}
	found, err := spaces.FindAny(id)
	if err != nil {
		return nil //nolint:nilerr // the action says what is wrong with it
	}
	return permit(c, capabilitiesFor(action, found.Kind, id)...)
}
