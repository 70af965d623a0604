package prompt

import (
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Clean is what a directive is about, in its own words: name, description and steps,
// without markup, permissions and what else stands in a prompt. It is what is looked for
// in what is remembered.
func Clean(doc *item.DirectiveDoc) string {
	var b strings.Builder
	b.WriteString(doc.Name + "\n" + doc.Description + "\n")
	for rest := doc.Body; rest != ""; {
		text, tag, behind := cutTag(rest)
		b.WriteString(text)
		if tag != "" {
			b.WriteString("\n" + strings.Join(wordsOf(tag), ": ") + "\n")
		}
		rest = behind
	}
	var lines []string
	for line := range strings.SplitSeq(b.String(), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// cutTag cuts a text around its first element or comment; without one tag is empty.
func cutTag(text string) (before, tag, behind string) {
	for at := 0; ; {
		open := strings.IndexByte(text[at:], '<')
		if open < 0 {
			return text, "", ""
		}
		at += open
		end := ">"
		if strings.HasPrefix(text[at:], "<!--") {
			end = "-->"
		} else if name := strings.TrimPrefix(text[at+1:], "/"); name == "" || !isLetter(rune(name[0])) {
			at++ // less than
			continue
		}
		length := strings.Index(text[at:], end)
		if length < 0 {
			return text, "", ""
		}
		length += len(end)
		return text[:at], text[at : at+length], text[at+length:]
	}
}

// wordsOf are what an element says of itself in words: its name and description.
func wordsOf(tag string) (words []string) {
	for _, attribute := range []string{" name=", " description="} {
		_, value, found := strings.Cut(tag, attribute)
		if !found || len(value) < 2 || value[0] != '"' && value[0] != '\'' {
			continue
		}
		if word, _, closed := strings.Cut(value[1:], value[:1]); closed {
			words = append(words, word)
		}
	}
	return words
}
