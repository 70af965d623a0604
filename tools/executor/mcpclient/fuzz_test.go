package mcpclient

import (
	"encoding/json"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// FuzzResult takes answers of a server apart. Text is left out only beside structured content, which
// stays as it was said.
func FuzzResult(f *testing.F) {
	for _, said := range []string{
		`{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`,
		`{"content":[{"type":"image","data":"aGVsbG8=","mimeType":"image/png"},{"type":"audio","data":"!","mimeType":""}]}`,
		`{"content":[{"type":"resource","resource":{"uri":"a:b","text":"x"}},{"type":"resource_link","uri":"a:b","name":"n"}],"isError":true}`,
		`{"content":[{"type":"text","text":"null"}],"structuredContent":null}`,
	} {
		f.Add([]byte(said))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		var answer mcp.CallToolResult
		if json.Unmarshal(said, &answer) != nil {
			return
		}
		r, err := resultOf(&answer)
		if err != nil {
			return
		}
		texts := 0
		for _, c := range answer.Content {
			if text, ok := c.(mcp.TextContent); ok {
				texts += len(text.Text)
			}
		}
		if texts > 0 && r.Text == "" && r.Structured == nil {
			t.Fatalf("the text of %s is lost", said)
		}
		if len(r.Attachments())+len(r.Links) > len(answer.Content) {
			t.Fatalf("%s has %d attachments and %d links", said, len(r.Attachments()), len(r.Links))
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}
