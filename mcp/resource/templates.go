package resource

import (
	"github.com/mark3labs/mcp-go/mcp"
)

// template is a form of URIs, as clients are told it.
type template struct{ name, title, uri, mime, description string }

func templates() []template {
	return []template{
		{"transcript", "Transcript of a thread", "rye://threads/{+id}/transcript{?cursor}", mimeText, "What a thread said and did. The answer names the URI to read on from."},
		{"result", "Result of a thread", "rye://threads/{+id}/result{?cursor}", mimeJSON, "State, result, outputs, error and cost."},
		{"cost", "Cost of a thread", "rye://threads/{+id}/cost", mimeJSON, "Turns, tokens and money, of the thread and everything below it."},
		{"chain", "Chain of a thread", "rye://threads/{+id}/chain", mimeJSON, "The threads that do one piece of work, one after the other."},
		{"item", "Directive, tool or knowledge", "rye://items/{type}/{+id}{?offset}", "", "The file without its signature line. type: directive, tool or knowledge."},
	}
}

// Templates implements [server.Resources].
func (*Resources) Templates() []mcp.ResourceTemplate {
	var all []mcp.ResourceTemplate
	for _, t := range templates() {
		all = append(all, mcp.NewResourceTemplate(t.uri, t.name,
			mcp.WithTemplateTitle(t.title), mcp.WithTemplateDescription(t.description), mcp.WithTemplateMIMEType(t.mime)))
	}
	return all
}
