package mcpclient

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Result is what a tool of a server answered.
type Result struct {
	// Text is what it said in words; empty where that is what Structured says too.
	Text       string          `json:"text,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Links      []Link          `json:"links,omitempty"`
	IsError    bool            `json:"-"`

	attachments []tool.Attachment
}

// Link is a resource that an answer points to.
type Link struct {
	URI         string `json:"uri"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
}

// Attachments are pictures, sounds and files of the answer.
func (r *Result) Attachments() []tool.Attachment { return r.attachments }

// resultOf takes an answer apart. Programs read Structured, so that a text which is
// the same again is left out.
func resultOf(answer *mcp.CallToolResult) (*Result, error) {
	r := &Result{IsError: answer.IsError}
	var texts []string
	for i, content := range answer.Content {
		switch c := content.(type) {
		case mcp.TextContent:
			texts = append(texts, c.Text)
		case mcp.ImageContent:
			if err := r.attach(i, c.MIMEType, c.Data); err != nil {
				return nil, err
			}
		case mcp.AudioContent:
			if err := r.attach(i, c.MIMEType, c.Data); err != nil {
				return nil, err
			}
		case mcp.ResourceLink:
			r.Links = append(r.Links, Link{URI: c.URI, Name: c.Name, Description: c.Description})
		case mcp.EmbeddedResource:
			text, err := r.embed(i, c.Resource)
			if err != nil {
				return nil, err
			}
			texts = append(texts, text...)
		default:
			return nil, fmt.Errorf("part %d of its answer is of a kind that is not known", i+1)
		}
	}
	r.Text = strings.Join(texts, "\n")
	if answer.StructuredContent == nil && len(answer.RawStructuredContent) == 0 {
		return r, nil
	}
	r.Structured = answer.RawStructuredContent
	if len(r.Structured) == 0 {
		var err error
		if r.Structured, err = json.Marshal(answer.StructuredContent); err != nil {
			return nil, err
		}
	}
	if r.repeats() {
		r.Text = ""
	}
	return r, nil
}

// repeats reports whether the text is the structured content again, for clients that
// do not read that: as JSON, or as one member of it.
func (r *Result) repeats() bool {
	structured, err := item.DecodeJSON(r.Structured)
	if err != nil {
		return false
	}
	if said, err := item.DecodeJSON([]byte(r.Text)); err == nil && reflect.DeepEqual(said, structured) {
		return true
	}
	members, _ := structured.(map[string]any)
	for _, member := range members {
		if member == r.Text {
			return true
		}
	}
	return false
}

func (r *Result) attach(i int, mediaType, data string) error {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return fmt.Errorf("part %d of its answer is not base64: %w", i+1, err)
	}
	r.attachments = append(r.attachments, tool.Attachment{Name: fmt.Sprintf("part-%d", i+1), MediaType: mediaType, Data: raw})
	return nil
}

func (r *Result) embed(i int, resource mcp.ResourceContents) ([]string, error) {
	switch c := resource.(type) {
	case mcp.TextResourceContents:
		return []string{c.Text}, nil
	case mcp.BlobResourceContents:
		return nil, r.attach(i, c.MIMEType, c.Blob)
	}
	return nil, fmt.Errorf("part %d of its answer is a resource of a kind that is not known", i+1)
}
