package page

import (
	"context"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/inputs"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Directive is one that can be started, as a list shows it.
type Directive struct {
	ID          string     `json:"id"`
	Space       item.Space `json:"space"`
	Category    string     `json:"category,omitempty"`
	Version     string     `json:"version,omitempty"`
	Description string     `json:"description,omitempty"`
	Signature   string     `json:"signature"`
	Problem     string     `json:"problem,omitempty"` // why it cannot be started
	// Part says that it is a part of something, and no task that a person would choose.
	Part bool `json:"part,omitempty"`
}

// DirectiveForm is what a form for a directive is made of.
type DirectiveForm struct {
	Directive
	Title   string         `json:"title,omitempty"`
	Path    string         `json:"path"`
	Inputs  []Input        `json:"inputs"`
	Schema  map[string]any `json:"schema"` // JSON Schema of the inputs
	Outputs []Output       `json:"outputs,omitempty"`
	Model   string         `json:"model,omitempty"` // or tier, that the directive asks for
	Limits  item.LimitSet  `json:"limits,omitempty"`
	Text    string         `json:"text"`
}

// Input is one of a directive.
type Input struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Required    bool     `json:"required,omitempty"`
	Default     any      `json:"default,omitempty"`
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	File        bool     `json:"file,omitempty"`   // the path of a file
	Secret      bool     `json:"secret,omitempty"` // for tools alone
}

// Output is one that a directive declares.
type Output struct {
	Name        string `json:"name"`
	Type        string `json:"type,omitempty"`
	Required    bool   `json:"required,omitempty"`
	Description string `json:"description,omitempty"`
}

// directives lists what can be started: the project's own before the user's and those
// that are part of rye-mcp.
func (p *Page) directives(ctx context.Context, c *call) (any, error) {
	project, err := p.open(ctx, c)
	if err != nil {
		return nil, err
	}
	list, err := listed(ctx, project, action.ListRequest{})
	if err != nil {
		return nil, err
	}
	return map[string]any{"directives": list}, nil
}

// listed are directives, and whether they can be started.
func listed(ctx context.Context, project *Project, req action.ListRequest) ([]Directive, error) {
	req.Kinds = []item.Kind{item.Directive}
	found, err := project.Actions.List(ctx, req)
	if err != nil {
		return nil, err
	}
	integrity, err := project.Actions.Trust.Integrity()
	if err != nil {
		return nil, action.Fault(err)
	}
	list := []Directive{}
	for _, l := range found {
		list = append(list, directiveOf(l, integrity))
	}
	return list, nil
}

// parts are the folders of the system space whose directives others are made of.
var parts = []string{"rye/agent/", "rye/core/", "rye/demo/"}

func directiveOf(l action.Listed, integrity trust.Settings) Directive {
	d := Directive{
		ID: l.ID, Space: l.Space, Category: l.Category, Version: l.Version, Description: l.Description, Signature: string(l.Signature), Problem: l.Error,
	}
	if d.Problem == "" && !integrity.Uses(string(item.Directive), l.Signature) {
		d.Problem = "its signature does not count: " + string(l.Signature)
	}
	for _, folder := range parts {
		d.Part = d.Part || l.Space == item.System && strings.HasPrefix(l.ID, folder)
	}
	return d
}

// directive answers with what a form for a directive is made of.
func (p *Page) directive(ctx context.Context, c *call) (any, error) {
	project, err := p.open(ctx, c)
	if err != nil {
		return nil, err
	}
	id := c.about
	found, err := project.Actions.Resolver.Find(item.Directive, id)
	if err != nil {
		return nil, action.Fault(err)
	}
	list, err := listed(ctx, project, action.ListRequest{Spaces: []item.Space{found.Space}, Pattern: escaped(found.ID)})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, tool.Faultf(tool.CodeNotFound, "there is no directive %s any more", clip(id))
	}
	form := DirectiveForm{Directive: list[0], Path: found.Path, Inputs: []Input{}, Text: string(found.Content)}
	doc, err := found.Directive()
	if err != nil {
		return form, nil //nolint:nilerr // Problem says why
	}
	form.Title, form.Limits, form.Schema = doc.Title, doc.Limits, inputs.Schema(doc)
	form.Model = doc.Model.ID
	if form.Model == "" {
		form.Model = doc.Model.Tier
	}
	for _, in := range doc.Inputs {
		form.Inputs = append(form.Inputs, Input{
			Name: in.Name, Type: in.Type, Required: in.Required, Default: in.Default, Description: in.Description, Enum: in.Enum, File: in.File, Secret: in.Secret,
		})
	}
	for _, out := range doc.Outputs {
		form.Outputs = append(form.Outputs, Output{Name: out.Name, Type: out.Type, Required: out.Required, Description: out.Description})
	}
	return form, nil
}

// escaped is an id as a pattern that matches it alone.
func escaped(id string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`).Replace(id)
}
