package action

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// FetchResult is one item as it stands in its file. A long one comes in pages.
type FetchResult struct {
	Success    bool           `json:"success"`
	ItemType   item.Kind      `json:"item_type"`
	ItemID     string         `json:"item_id"`
	Space      item.Space     `json:"space"`
	Path       string         `json:"path"`
	TotalBytes int            `json:"total_bytes" jsonschema:"length of the whole content"`
	NextOffset int            `json:"next_offset,omitempty" jsonschema:"there is more: give it back as offset to read on"`
	Signature  Signature      `json:"signature"`
	Shadows    []Shadow       `json:"shadows,omitempty" jsonschema:"items of the same id that this one hides"`
	CopiedTo   string         `json:"copied_to,omitempty" jsonschema:"path of the copy"`
	Replaced   string         `json:"replaced,omitempty" jsonschema:"where what stood there is kept"`
	Next       string         `json:"next,omitempty" jsonschema:"what to call next"`
	Warnings   []string       `json:"warnings,omitempty"`
	Metadata   map[string]any `json:"metadata"`
	Content    string         `json:"content" jsonschema:"the file without its signature line, from offset on"`
	// SignNext says that Next is to sign the copy.
	SignNext bool `json:"-"`
}

// Signature says what the signature of an item is worth, whatever follows from
// it for executing the item.
type Signature struct {
	State      trust.Status `json:"state" jsonschema:"ok, system, unsigned, altered, untrusted_key, other_item, unbound, body_not_covered, not_shipped or unknown"`
	By         string       `json:"by,omitempty" jsonschema:"fingerprint of the key that the signature names"`
	Owner      string       `json:"owner,omitempty" jsonschema:"whose key it is, if it is trusted"`
	SignedAt   string       `json:"signed_at,omitempty" jsonschema:"as the file says; not signed itself"`
	Provenance string       `json:"provenance,omitempty" jsonschema:"provider@user of a registry, as the file says; not signed itself"`
	Detail     string       `json:"detail,omitempty" jsonschema:"what is wrong"`
}

// unknownSignature is the state where the user's keys cannot be read.
const unknownSignature trust.Status = "unknown"

func (a *Actions) signature(found *resolve.Found) Signature {
	v, err := a.Trust.Verify(trust.SubjectOf(found))
	if err != nil {
		return Signature{State: unknownSignature, Detail: err.Error()}
	}
	s := Signature{State: v.Status, By: v.Fingerprint, Owner: v.Owner, Provenance: v.Provenance, Detail: v.Detail}
	if !v.Time.IsZero() {
		s.SignedAt = v.Time.Format(time.RFC3339)
	}
	return s
}

// Fetch reads one item as a *FetchResult, or searches and returns what Search
// does. An item that does not parse is returned with a warning: fetching it is
// how it gets mended.
func (a *Actions) Fetch(ctx context.Context, c Caller, r FetchRequest) (any, error) {
	result, err := a.fetch(ctx, c, r)
	if err != nil {
		return nil, Fault(err)
	}
	return result, nil
}

func (a *Actions) fetch(ctx context.Context, c Caller, r FetchRequest) (any, error) {
	if err := checkProject(c, r.ProjectPath); err != nil {
		return nil, err
	}
	switch {
	case r.ItemID != "" && r.Query != "":
		return nil, tool.Faultf(tool.CodeBadArguments, "item_id and query are both given").
			WithHint("Give item_id to read one item, or query to search.")
	case r.ItemID == "" && (r.Source != "" || r.Destination != "" || r.Overwrite):
		return nil, tool.Faultf(tool.CodeBadArguments, "source, destination and overwrite go with item_id").
			WithHint("Find the id first, then give item_id.")
	case r.Query != "":
		return a.search(ctx, c, SearchRequest{
			Query: r.Query, Scope: scopeOf(r), Limit: r.Limit, Offset: r.Offset, action: "fetch", room: r.MaxBytes,
		})
	case r.ItemID == "":
		return nil, tool.Faultf(tool.CodeBadArguments, `missing property "item_id" or "query"`)
	}
	found, err := a.findIn(a.in(c, r.Source), c, "fetch", r.ItemType, r.ItemID)
	if err != nil {
		return nil, err
	}
	copied, err := a.copyItem(c, found, r)
	if err != nil {
		return nil, err
	}
	// A part of a secret or a signature is not recognised, so both go before the cut.
	text := sign.Hide(c.Env.Masked(string(parse.StripSignature(found.Content))))
	result := &FetchResult{
		Success: true, ItemType: found.Kind, ItemID: found.ID, Space: found.Space, Path: found.Path,
		TotalBytes: len(text), Signature: a.signature(found), Shadows: shadows(found),
		CopiedTo: copied.path, Replaced: copied.replaced, Next: copied.next, SignNext: copied.sign,
	}
	if result.Metadata, err = metadata(found); err != nil {
		result.Metadata = map[string]any{}
		result.Warnings = []string{"this item cannot be executed: " + err.Error()}
	}
	result.Content, result.NextOffset, err = pageOf(text, r.Offset, textRoom(c, r.MaxBytes, result.Metadata))
	if err != nil {
		return nil, err
	}
	return result, nil
}

// scopeOf lets item_type narrow a query.
func scopeOf(r FetchRequest) string {
	if r.Scope == "" {
		return r.ItemType
	}
	return r.Scope
}

func metadata(found *resolve.Found) (map[string]any, error) {
	switch found.Kind {
	case item.Directive:
		doc, err := found.Directive()
		if err != nil {
			return nil, err
		}
		m := directiveMetadata(doc)
		if found.Detached != nil { // its file says these things in other words, or not at all
			m["without_effect"] = without(doc)
		}
		return m, nil
	case item.Knowledge:
		doc, err := found.Knowledge()
		if err != nil {
			return nil, err
		}
		return knowledgeMetadata(doc), nil
	default:
		doc, err := found.Tool()
		if err != nil {
			return nil, err
		}
		m := map[string]any{"description": doc.Description}
		maps.Copy(m, doc.Metadata)
		if len(doc.Notes) > 0 {
			m["notes"] = notes(doc)
		}
		return m, nil
	}
}

// without says what of another program's item has no counterpart.
func without(doc *item.DirectiveDoc) []string {
	list := make([]string, len(doc.Unknown))
	for i, name := range doc.Unknown {
		list[i] = fmt.Sprintf("line %d: %s", name.Line, name)
	}
	return list
}

// notes says what is not known of a tool without running it.
func notes(doc *item.ToolDoc) []string {
	list := make([]string, len(doc.Notes))
	for i, n := range doc.Notes {
		list[i] = n.String()
	}
	return list
}

// directiveMetadata shows what somebody needs to know to execute a directive.
func directiveMetadata(doc *item.DirectiveDoc) map[string]any {
	m := map[string]any{
		"name":         doc.Name,
		"version":      doc.Version,
		"description":  doc.Description,
		"category":     doc.Category,
		"author":       doc.Author,
		"inputs":       inputs.Schema(doc),
		"outputs":      outputs(doc),
		"limits":       doc.Limits,
		"capabilities": doc.Permissions.Capabilities,
	}
	for key, value := range map[string]string{
		"extends": doc.Extends, "model_tier": doc.Model.Tier, "model": doc.Model.ID,
	} {
		if value != "" {
			m[key] = value
		}
	}
	return m
}

type output struct {
	Name        string `json:"name"`
	Type        string `json:"type,omitempty"`
	Required    bool   `json:"required"`
	Description string `json:"description,omitempty"`
}

func outputs(doc *item.DirectiveDoc) []output {
	list := make([]output, len(doc.Outputs))
	for i, o := range doc.Outputs {
		list[i] = output{Name: o.Name, Type: o.Type, Required: o.Required, Description: o.Description}
	}
	return list
}
