package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// said is what the tools return.
type said struct {
	Success bool           `json:"success"`
	Text    string         `json:"text,omitempty"`
	Action  string         `json:"action,omitempty"`
	Content map[string]any `json:"content,omitempty"`

	picture []byte
}

// Attachments implements [tool.Attacher].
func (s said) Attachments() []tool.Attachment {
	if s.picture == nil {
		return nil
	}
	return []tool.Attachment{{Name: "pixel.png", MediaType: "image/png", Data: s.picture}}
}

func saying(text string) (said, error) { return said{Success: true, Text: text}, nil }

type nothing struct{}

// add registers a tool without arguments.
func add(s *server.Server, name string, do func(context.Context, server.Call) (said, error)) {
	server.Add(s, server.Tool[nothing, said]{
		Name: name, Description: "For scenarios of the conformance suite.", Annotations: server.Annotations{Title: name, ReadOnly: true},
		Handle: func(ctx context.Context, call server.Call, _ nothing) (said, error) { return do(ctx, call) },
	})
}

// addTools registers what the scenarios call, under the names they give.
func addTools(s *server.Server, offered *prompts) {
	add(s, "test_simple_text", func(context.Context, server.Call) (said, error) {
		return saying("This is a simple text response for testing.")
	})
	add(s, "test_error_handling", func(context.Context, server.Call) (said, error) {
		return said{}, tool.Faultf(tool.CodeToolFailed, "This tool intentionally returns an error for testing")
	})
	add(s, "test_image_content", func(context.Context, server.Call) (said, error) {
		return said{Success: true, Text: "a pixel", picture: pixel()}, nil
	})
	add(s, "test_tool_with_progress", report)
	add(s, "test_logging_tool", func(context.Context, server.Call) (said, error) { return saying("done") })
	add(s, "test_trigger_prompt_change", func(context.Context, server.Call) (said, error) {
		offered.change()
		return saying("changed")
	})
	addSchemaTool(s)
	addAskingTools(s)
}

// report tells how far it is, slowly enough for the server to pass all of it on.
func report(ctx context.Context, call server.Call) (said, error) {
	for _, progress := range []float64{0, 50, 100} {
		call.Progress(server.Progress{Progress: progress, Total: 100})
		select {
		case <-ctx.Done():
			return said{}, context.Cause(ctx)
		case <-time.After(150 * time.Millisecond):
		}
	}
	return saying("done")
}

// pixel is the smallest picture.
func pixel() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))) // a buffer takes everything
	return b.Bytes()
}

// schema2020 is the input of the scenario json-schema-2020-12.
const schema2020 = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
  "properties": {
    "name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
    "contactMethod": {"type": "string", "enum": ["phone", "email"]}, "phone": {"type": "string"}, "email": {"type": "string"}
  },
  "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
  "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
  "then": {"required": ["phone"]},
  "else": {"required": ["email"]},
  "additionalProperties": false
}`

func addSchemaTool(s *server.Server) {
	server.AddUntyped(s, server.Untyped{
		Name: "json_schema_2020_12_tool", Description: "Tool with JSON Schema 2020-12 features", Annotations: server.Annotations{Title: "Schema", ReadOnly: true},
		Input:  func(...tool.Text) (json.RawMessage, error) { return json.RawMessage(schema2020), nil },
		Output: tool.SchemaFor[said],
		Bind: func(json.RawMessage) func(context.Context, server.Call, json.RawMessage) (any, error) {
			return func(context.Context, server.Call, json.RawMessage) (any, error) { return saying("done") }
		},
	})
}

// The questions of the scenarios.
const (
	nameSchema    = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	colorSchema   = `{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`
	confirmSchema = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`
	personSchema  = `{"type":"object","properties":{"username":{"type":"string","description":"User's response"},
		"email":{"type":"string","description":"User's email address"}},"required":["username","email"]}`
	defaultsSchema = `{"type":"object","properties":{
		"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
		"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`
	enumsSchema = `{"type":"object","properties":{
		"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"}]}}}}`
)

// addAskingTools registers those that ask the person.
func addAskingTools(s *server.Server) {
	name := server.ElicitRequest{Key: "user_name", Message: "What is your name?", Schema: json.RawMessage(nameSchema)}
	confirm := server.ElicitRequest{Key: "confirm", Message: "Please confirm", Schema: json.RawMessage(confirmSchema)}
	asking(s, "test_streaming_elicitation", name)
	asking(s, "test_input_required_result_elicitation", name)
	asking(s, "test_input_required_result_request_state", confirm)
	asking(s, "test_input_required_result_tampered_state", confirm)
	asking(s, "test_input_required_result_multi_round",
		server.ElicitRequest{Key: "step1", Message: "Step 1: What is your name?", Schema: json.RawMessage(nameSchema)},
		server.ElicitRequest{Key: "step2", Message: "Step 2: What is your favorite color?", Schema: json.RawMessage(colorSchema)})
	asking(s, "test_elicitation_sep1034_defaults", server.ElicitRequest{Message: "Please review", Schema: json.RawMessage(defaultsSchema)})
	asking(s, "test_elicitation_sep1330_enums", server.ElicitRequest{Message: "Please choose", Schema: json.RawMessage(enumsSchema)})
	server.Add(s, server.Tool[asked, said]{
		Name: "test_elicitation", Description: "For scenarios of the conformance suite.", Annotations: server.Annotations{Title: "Ask", ReadOnly: true},
		Handle: func(ctx context.Context, _ server.Call, in asked) (said, error) {
			return ask(ctx, server.ElicitRequest{Message: in.Message, Schema: json.RawMessage(personSchema)})
		},
	})
}

type asked struct {
	Message string `json:"message" jsonschema:"what to ask"`
}

// asking registers a tool that asks one question after the other.
func asking(s *server.Server, name string, questions ...server.ElicitRequest) {
	add(s, name, func(ctx context.Context, _ server.Call) (said, error) {
		var last said
		for _, q := range questions {
			var err error
			if last, err = ask(ctx, q); err != nil {
				return said{}, err
			}
		}
		return last, nil
	})
}

func ask(ctx context.Context, q server.ElicitRequest) (said, error) {
	answer, err := server.Elicit(ctx, q)
	if errors.Is(err, server.ErrNoElicitation) {
		return said{}, tool.Faultf(tool.CodeUnsupported, "%w", err)
	}
	if err != nil {
		return said{}, err
	}
	result := said{Success: true, Text: "state-ok", Action: answer.Action}
	if answer.Content != nil {
		err = json.Unmarshal(answer.Content, &result.Content)
	}
	return result, err
}
