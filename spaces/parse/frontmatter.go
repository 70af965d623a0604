package parse

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// frontMatter names what YAML front matter above the block of a directive says and the block
// does not: other programs read it, and nobody does here.
func frontMatter(before string, doc *item.DirectiveDoc) []item.UnknownName {
	places := []struct {
		element string
		said    bool
		keys    []string
	}{
		{"<description>", doc.Description != "", []string{"description"}},
		{"<model>", doc.Model != item.ModelChoice{}, []string{"model", "effort"}},
		{"<limits>", len(doc.Limits) > 0, []string{"limits", "maxTurns", "max-turns"}},
		{"<permissions>", doc.Permissions.Declared, []string{"permissions", "tools", "allowed-tools", "disallowedTools"}},
		{"<inputs>", len(doc.Inputs) > 0, []string{"inputs", "parameters", "arguments", "argument-hint"}},
	}
	var found []item.UnknownName
	for _, k := range frontMatterKeys(before) {
		for _, p := range places {
			if !p.said && slices.Contains(p.keys, k.key) {
				found = append(found, item.UnknownName{Line: k.line, Nearest: p.element, Text: fmt.Sprintf("front matter is not read: its key %s has no effect", k.key)})
			}
		}
	}
	return found
}

// keyLine is a key of front matter.
type keyLine struct {
	line int
	key  string
}

// frontMatterKeys are the keys of the front matter that a text begins with, behind a
// signature.
func frontMatterKeys(text string) (keys []keyLine) {
	text, line := skipComments(text)
	isFence := func(row string) bool { return strings.TrimRight(row, " \t") == "---" }
	first, rest := cutLine(text)
	if !isFence(first) {
		return nil
	}
	matter, _, closed := cutAtLine(rest, isFence)
	if !closed { // a line of Markdown
		return nil
	}
	for row := range strings.SplitSeq(matter, "\n") {
		line++
		if key, _, isKey := strings.Cut(row, ":"); isKey {
			keys = append(keys, keyLine{line, key})
		}
	}
	return keys
}
