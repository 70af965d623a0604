package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/llm/scripted"
)

// Accepted fails a test whose requests some vendor would refuse for what the conversation
// goes on to hold: names of tools, images, halves of characters, images of failed
// results; or for schemas whose arrays say nothing of their elements.
func Accepted(t testing.TB, requests []scripted.Recorded) {
	t.Helper()
	for i, request := range requests {
		var body map[string]any
		if json.Unmarshal(request.Body, &body) != nil {
			continue // the server has refused it
		}
		c := checker{t, i + 1}
		c.tools(body["tools"])
		each(body["messages"], c.said)
		each(body["input"], c.said)
		if m := halves.Find(request.Body); m != nil {
			c.Errorf("request %d: half a character in %s", c.number, m)
		}
	}
}

type checker struct {
	testing.TB

	number int
}

var (
	toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	// halves finds the first half of a character without the second, where it is not text
	// within a text.
	halves = regexp.MustCompile(`(?i)[^\\]\\ud[89ab][0-9a-f]{2}([^\\]|\\[^u]|\\u[^d]|\\ud[^cdef])`)
	seen   = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
)

// each calls f with every object in a value of JSON, outer ones first.
func each(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(v)
		for _, member := range v {
			each(member, f)
		}
	case []any:
		for _, one := range v {
			each(one, f)
		}
	}
}

func (c checker) name(v any) {
	c.Helper()
	if name, _ := v.(string); !toolName.MatchString(name) {
		c.Errorf("request %d: the name %q of a tool", c.number, v)
	}
}

func (c checker) tools(list any) {
	c.Helper()
	tools, _ := list.([]any)
	for _, tool := range tools {
		one, _ := tool.(map[string]any)
		if function, chat := one["function"].(map[string]any); chat {
			one = function
		}
		c.name(one["name"])
		each(one, func(schema map[string]any) {
			types, _ := schema["type"].([]any)
			if _, said := schema["items"]; !said && (schema["type"] == "array" || slices.Contains(types, any("array"))) {
				c.Errorf("request %d: tool %s: array schema missing items: %v", c.number, one["name"], schema)
			}
		})
	}
}

// said looks at an object of a conversation.
func (c checker) said(o map[string]any) {
	c.Helper()
	switch o["type"] {
	case "tool_use", "function_call":
		c.name(o["name"])
	case "function":
		if function, is := o["function"].(map[string]any); is {
			c.name(function["name"])
		}
	case "base64":
		mediaType, _ := o["media_type"].(string)
		data, _ := o["data"].(string)
		c.image(mediaType, data)
	case "tool_result":
		if o["is_error"] == true {
			each(o["content"], func(part map[string]any) {
				if part["type"] == "image" {
					c.Errorf("request %d: a failed result has an image", c.number)
				}
			})
		}
	case "image_url", "input_image":
		address, _ := o["image_url"].(string)
		if inner, is := o["image_url"].(map[string]any); is {
			address, _ = inner["url"].(string)
		}
		mediaType, data, _ := strings.Cut(strings.TrimPrefix(address, "data:"), ";base64,")
		c.image(mediaType, data)
	}
}

func (c checker) image(mediaType, data string) {
	c.Helper()
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil || !slices.Contains(seen, mediaType) || http.DetectContentType(raw) != mediaType {
		c.Errorf("request %d: an image of type %q that is %s, %v", c.number, mediaType, http.DetectContentType(raw), err)
	}
}
