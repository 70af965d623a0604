package parse

import "strings"

// script returns the text of a script without shebang and signature.
func script(file *source) string {
	_, rest := cutShebang(StripSignature([]byte(file.text)))
	return string(rest)
}

// pythonDescription prefers the docstring of the module over the comment that
// stands in front of it.
func pythonDescription(text string) string {
	if doc := firstParagraph(docstring(afterLineComments(text, "#"))); doc != "" {
		return doc
	}
	return firstParagraph(lineComment(text, "#"))
}

// scriptDescription reads a /* … */ or // comment.
func scriptDescription(text string) string {
	text = strings.TrimLeft(text, " \t\n")
	if block, ok := strings.CutPrefix(text, "/*"); ok {
		block, _, _ = strings.Cut(block, "*/")
		return firstParagraph(block)
	}
	return firstParagraph(lineComment(text, "//"))
}

// docstring returns the content of the string literal that text starts with.
func docstring(text string) string {
	text = strings.TrimLeft(text, "rRuUbB")
	for _, quote := range []string{`"""`, `'''`, `"`, `'`} {
		if body, ok := strings.CutPrefix(text, quote); ok {
			if len(quote) == 1 {
				body, _ = cutLine(body)
			}
			body, _, closed := strings.Cut(body, quote)
			if !closed {
				return ""
			}
			return body
		}
	}
	return ""
}

// afterLineComments returns text behind its leading comments and empty lines.
func afterLineComments(text, sign string) string {
	for text != "" {
		line, rest := cutLine(text)
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, sign) {
			break
		}
		text = rest
	}
	return text
}

// lineComment returns the first run of comment lines, without their signs.
// Lines that instruct an editor or interpreter (-*- coding -*-) do not count.
func lineComment(text, sign string) string {
	var out []string
	for text != "" {
		var line string
		line, text = cutLine(text)
		comment, ok := strings.CutPrefix(strings.TrimSpace(line), sign)
		switch {
		case ok && strings.Contains(comment, "-*-"):
		case ok:
			out = append(out, strings.TrimSpace(comment))
		case len(out) > 0 || strings.TrimSpace(line) != "":
			return strings.Join(out, "\n")
		}
	}
	return strings.Join(out, "\n")
}

// firstParagraph joins the lines up to the first empty one into one line. The
// stars of a block comment do not count as text, and its tags (@param) end it.
func firstParagraph(text string) string {
	var words []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "*"))
		if strings.HasPrefix(line, "@") || line == "" && len(words) > 0 {
			break
		}
		words = append(words, strings.Fields(line)...)
	}
	return strings.Join(words, " ")
}
