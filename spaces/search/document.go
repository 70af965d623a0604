package search

import (
	"path"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// maxBodyBytes is how much of an item's text is indexed: 256 KiB, many times
// what is written by hand.
const maxBodyBytes = 256 << 10

// document is what the index holds of an item.
type document struct {
	name, description, category string // shown
	title, tags, body           string // only searched
}

// describe reads an item. One that does not parse can still be found: by its id,
// its path and its raw text, and its description says what is wrong.
func describe(e resolve.Entry, src []byte) document {
	doc, err := parseItem(e, src)
	if err != nil {
		return broken(e, "does not parse: "+err.Error(), src)
	}
	if doc.name == "" {
		doc.name = path.Base(e.ID)
	}
	return doc
}

// broken describes an item that cannot be used.
func broken(e resolve.Entry, reason string, src []byte) document {
	return document{
		name:        path.Base(e.ID),
		description: reason,
		body:        path.Join(".ai", e.Kind.Dir(), e.ID+e.Ext) + "\n" + string(src),
	}
}

func parseItem(e resolve.Entry, src []byte) (document, error) {
	switch e.Kind {
	case item.Directive:
		d, err := parse.Directive(e.Path, src)
		if err != nil {
			return document{}, err
		}
		return document{
			name: d.Name, description: d.Description, category: d.Category,
			title: d.Title, body: d.Prose + "\n" + d.Body,
		}, nil
	case item.Knowledge:
		k, err := parse.Knowledge(e.Path, src)
		if err != nil {
			return document{}, err
		}
		return document{
			name: k.Name, description: k.Description, category: k.Category,
			title: k.Title, tags: strings.Join(k.Tags, " "), body: k.Body,
		}, nil
	default:
		t, err := parse.Tool(e.Path, src)
		if err != nil {
			return document{}, err
		}
		return document{
			description: t.Description, category: t.Category,
			body: string(parse.StripSignature(src)),
		}, nil
	}
}

// columns are the values of the words table. The id counts as a name, tags count
// as a category.
func (d document) columns(id string) []any {
	body := sign.Hide(d.body) // a signature is not to be found either
	return []any{
		clean(d.title),
		clean(d.name + "\n" + id),
		clean(d.description),
		clean(d.category + "\n" + d.tags),
		clean(body[:min(len(body), maxBodyBytes)]),
	}
}

// clean makes text fit for the database, which takes a NUL for its end.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", " ")
}
