package search

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/search/query"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// How much of an item is indexed: of its text 256 KiB, many times what is written by
// hand, and 16 KiB of each other field.
const (
	maxBodyBytes  = 256 << 10
	maxFieldBytes = 16 << 10
)

// document is what the index holds of an item.
type document struct {
	name, description, category string // shown
	title, body, version        string
	tags                        []string
	facts                       map[string]any // what filters ask for, as the file says it
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
		body:        e.Below() + "\n" + string(src),
	}
}

func parseItem(e resolve.Entry, src []byte) (document, error) {
	switch e.Kind {
	case item.Directive:
		d, err := e.Directive(src)
		if err != nil {
			return document{}, err
		}
		return document{
			name: d.Name, description: d.Description, category: d.Category,
			title: d.Title, body: d.Prose + "\n" + d.Body,
			version: d.Version,
			facts:   map[string]any{"author": d.Author, "extends": d.Extends, "model": d.Model.ID, "tier": d.Model.Tier},
		}, nil
	case item.Knowledge:
		k, err := parse.Knowledge(e.Path, src)
		if err != nil {
			return document{}, err
		}
		return document{
			name: k.Name, description: k.Description, category: k.Category,
			title: k.Title, tags: k.Tags, body: k.Body, version: k.Version, facts: k.Metadata,
		}, nil
	default:
		t, err := parse.Tool(e.Path, src)
		if err != nil {
			return document{}, err
		}
		return document{
			description: t.Description, category: t.Category,
			body: string(parse.StripSignature(src)), version: t.Version, facts: t.Metadata,
		}, nil
	}
}

// columns are the values of the words table. The id counts as a name, tags count
// as a category.
func (d document) columns(id string) []any {
	return []any{
		cut(d.title, maxFieldBytes),
		cut(d.name+"\n"+id, maxFieldBytes),
		cut(d.description, maxFieldBytes),
		cut(d.category+"\n"+strings.Join(d.tags, "\n"), maxFieldBytes),
		cut(sign.Hide(d.body), maxBodyBytes), // a signature is not to be found either
		query.Everything,
	}
}

// Bounds of the facts of one item: a file can hold any number of them.
const (
	maxFacts     = 64
	maxFactBytes = 256
)

// fact is what an item says of itself: a key of its metadata, and a value.
type fact [2]string

// allFacts are the facts of an item: what its file says that is a value or a list of
// them, under the keys of the file, and its kind.
func (d document) allFacts(kind item.Kind) []fact {
	all := []fact{{"type", string(kind)}, {"name", clean(d.name)}}
	add := func(key string, value any) {
		text := strings.TrimSpace(fmt.Sprint(value))
		f := fact{strings.ToLower(key), clean(text)}
		if text == "" || len(text) > maxFactBytes || len(key) > maxFactBytes || len(all) == maxFacts || slices.Contains(all, f) {
			return
		}
		all = append(all, f)
	}
	add("category", d.category)
	add("version", d.version) // as it is written: 1.10 is a number to YAML, and the same as 1.1
	for _, tag := range d.tags {
		add("tags", tag)
	}
	for _, key := range slices.Sorted(maps.Keys(d.facts)) {
		if key == "version" {
			continue
		}
		switch value := d.facts[key].(type) {
		case nil, map[string]any:
		case []any:
			for _, one := range value {
				add(key, one)
			}
		case []string:
			for _, one := range value {
				add(key, one)
			}
		default:
			add(key, value)
		}
	}
	return all
}

// cut is the beginning of a text, fit for the index.
func cut(text string, most int) string { return query.Apart(clean(item.Begin(text, most))) }

// clean makes text fit for the database, which takes a NUL for its end.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", " ")
}
