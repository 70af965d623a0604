package claude

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// understood are the keys that count, or that mean nothing for a thread.
func understood() []string {
	return []string{
		"name", "description", "tools", "allowed-tools", "allowed_tools", "disallowedTools", "disallowed-tools", "model", "effort", "maxTurns", "max-turns", "background", "isolation", "mcpServers",
		"argument-hint", "version", "author", "color", "category", "tags", "license", "metadata", "compatibility", "user-invocable",
		"disable-model-invocation", "proactive", "title", "when_to_use", "created", "updated", "keywords", "emoji", "icon", "priority", "type",
	}
}

// unsupported says it of the keys that other programs act on and this one does not, with what to
// do instead.
func unsupported(key string) string {
	switch key {
	case "permissionMode":
		return "permissionMode has no effect: a thread asks nobody, and may do what its tools say"
	case "skills":
		return "skills are not put into the prompt: name them in the text, and Skill among the tools"
	case "hooks":
		return "hooks do not run here"
	case "memory":
		return "memory has no counterpart here"
	case "context", "agent":
		return key + " has no effect: a fork is a thread of its own, and inline is the caller's"
	case "arguments":
		return "arguments has no effect: names of arguments are not filled in"
	case "paths", "shell", "initialPrompt", "disabled":
		return key + " has no effect here"
	}
	return ""
}

// isKnown reports whether a key is one of this format.
func isKnown(key string) bool { return slices.Contains(understood(), key) || unsupported(key) != "" }

// noteRest names what else stands in the front matter: what other programs act on, a
// key that may be misspelt, and the rest in one note.
func noteRest(doc *item.DirectiveDoc, f front) {
	var rest []string
	line := 0
	for _, one := range f.fields {
		text, nearest := unsupported(one.key), item.Nearest(one.key, understood())
		switch {
		case slices.Contains(understood(), one.key) || one.shape == isNothing || one.text == "false" && text != "":
		case text != "":
			doc.Unknown = append(doc.Unknown, item.UnknownName{Line: one.line, Text: text})
		case nearest != "":
			doc.Unknown = append(doc.Unknown, item.UnknownName{
				Line: one.line, Text: item.Shown(one.key) + " is no key of this format", Nearest: nearest, Part: partOf(nearest),
			})
		default:
			rest, line = append(rest, item.Shown(one.key)), cmp.Or(line, one.line)
		}
	}
	if len(rest) > 0 {
		doc.Unknown = append(doc.Unknown, item.UnknownName{Line: line, Text: "without effect here: " + shownList(rest)})
	}
}

// maxNamed is how many names a note repeats.
const maxNamed = 12

func shownList(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// partOf is what a misspelt key may have been meant to say; a thread is not started
// where that is what it may do, or on which model.
func partOf(nearest string) item.Part {
	switch nearest {
	case "tools", "allowed-tools", "allowed_tools", "disallowedTools", "disallowed-tools":
		return item.PartPermissions
	case "maxTurns", "max-turns":
		return item.PartLimits
	case "model":
		return item.PartModel
	}
	return ""
}
