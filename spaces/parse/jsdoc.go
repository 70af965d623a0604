package parse

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// scriptHeader reads the comment that a JavaScript or TypeScript file begins
// with. Of a /** … */ block the tags @version, @tool_type, @executor_id,
// @category and @description count and, where there is one of the first three,
// the parameters: @param {type} name - description. Without it the block may be
// about a function.
func scriptHeader(text string) header {
	h := header{description: scriptDescription(text)}
	block, isBlock := strings.CutPrefix(strings.TrimLeft(text, " \t\n"), "/**")
	if !isBlock {
		return h
	}
	block, _, _ = strings.Cut(block, "*/")
	if h.take(block); h.tags["version"]+h.tags["tool_type"]+h.tags["executor_id"] == "" {
		h.params = nil
	}
	delete(h.tags, "network") // which is a constant there
	return h
}

// shellTool reads the comment that a shell script begins with. It is about the script, so
// that its parameters count whatever other tags it has.
func shellTool(comment string) *item.ToolDoc {
	h := header{description: firstParagraph(comment)}
	h.take(comment)
	network, declared := h.tags["network"]
	delete(h.tags, "network")
	doc := scriptTool(nil, h)
	if !declared {
		return doc
	}
	if doc.Metadata == nil {
		doc.Metadata = map[string]any{}
	}
	doc.Metadata["network"] = shellNetwork(network)
	return doc
}

// shellNetwork is what the text of a tag declares: true where it says nothing, true or false
// where it begins so, else hosts.
func shellNetwork(text string) any {
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	if len(words) == 0 {
		return true
	}
	if on, err := strconv.ParseBool(words[0]); err == nil {
		return on
	}
	hosts := make([]any, len(words))
	for i, host := range words {
		hosts[i] = host
	}
	return hosts
}

// noParams is the text of a tag @param that says that there are none.
const noParams = "none"

// take reads the tags of a comment, and the parameters where all of them are understood.
func (h *header) take(comment string) {
	params := &schemaBuilder{src: &source{}, properties: map[string]any{}}
	known, none := true, false
	h.tags = map[string]string{}
	for _, tag := range docTags(comment) {
		switch tag.name {
		case "version", "tool_type", "executor_id", "category", "description", "network":
			h.tags[tag.name] = tag.text
		case "param":
			if tag.text == noParams {
				none = true
				continue
			}
			known = addParam(params, tag.text) && known
		}
	}
	if known && (none || len(params.properties) > 0) {
		h.params = params.object()
	}
}

// docTag is a tag of a JSDoc block: "@name text".
type docTag struct{ name, text string }

// docTags lists the tags of a block. A text goes on until the next tag.
func docTags(block string) []docTag {
	var tags []docTag
	for line := range strings.SplitSeq(block, "\n") {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "*"))
		if tag, ok := strings.CutPrefix(line, "@"); ok {
			name, text, _ := strings.Cut(tag, " ")
			tags = append(tags, docTag{name, strings.TrimSpace(text)})
		} else if last := len(tags) - 1; last >= 0 && line != "" {
			tags[last].text = strings.TrimSpace(tags[last].text + " " + line)
		}
	}
	return tags
}

// docParam matches {type} name, or [name] or [name=default] for one that may be
// left out, and the description.
var docParam = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\{([^{}]+)\}\s+(\[)?([A-Za-z_][\w-]*)(?:=([^\]]*))?(\])?(?:\s+-?\s*(.*))?$`)
})

// addParam declares a parameter. It reports whether the tag was understood: a
// schema that lacks parameters would refuse what the tool accepts.
func addParam(params *schemaBuilder, tag string) bool {
	m := docParam().FindStringSubmatch(tag)
	if m == nil || (m[2] == "") != (m[5] == "") {
		return false
	}
	typ, element := strings.TrimSpace(m[1]), ""
	if of, isList := strings.CutSuffix(typ, "[]"); isList {
		typ, element = item.TypeArray, of
	}
	declaration := map[string]any{"type": typ, "required": m[2] == ""}
	if element != "" {
		of, err := item.ParseType(element)
		if err != nil {
			return false
		}
		declaration["items"] = map[string]any{"type": of}
	}
	if m[6] != "" {
		declaration["description"] = m[6]
	}
	if m[4] != "" {
		value, err := docDefault(typ, m[4])
		if err != nil {
			return false
		}
		declaration["default"] = value
	}
	return params.add(m[3], 1, declaration) == nil
}

// docDefault reads the default of a parameter; a text may stand in quotes.
func docDefault(typ, text string) (any, error) {
	name, err := item.ParseType(typ)
	if err != nil {
		return nil, err
	}
	if quote := text[0]; name == item.TypeString && len(text) > 1 && (quote == '"' || quote == '\'') && text[len(text)-1] == quote {
		text = text[1 : len(text)-1]
	}
	return item.ParseValue(name, text)
}
