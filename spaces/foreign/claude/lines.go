package claude

import "strings"

// readLines reads front matter that is no YAML the way its author meant it: a key and
// its value on a line. One in seven real files is such, mostly for a colon in its
// description.
func readLines(matter string) front {
	var f front
	line := firstLine - 1
	for row := range strings.SplitSeq(matter, "\n") {
		line++
		key, value, isKey := keyOf(row)
		switch {
		case isKey && (isKnown(key) || !f.inProse()):
			f.fields = append(f.fields, loose(key, value, line))
		case len(f.fields) > 0 && strings.TrimSpace(row) != "":
			f.fields[len(f.fields)-1].more(row)
		}
	}
	for i := range f.fields {
		f.fields[i].finish()
	}
	return f
}

// keyOf reads a line that begins with a key.
func keyOf(row string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(row, ":")
	if !ok || key == "" || value != "" && value[0] != ' ' && value[0] != '\t' {
		return "", "", false
	}
	for i := range len(key) {
		c := key[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '-' && c != '_' && (c < '0' || c > '9')) {
			return "", "", false
		}
	}
	return key, strings.TrimSpace(value), true
}

// inProse reports whether the last key is one whose text may go on for lines, in which
// "Context:" is no key.
func (f front) inProse() bool {
	return len(f.fields) > 0 && f.fields[len(f.fields)-1].key == "description"
}

func loose(key, value string, line int) field {
	one := field{key: key, line: line, text: value}
	if strings.TrimLeft(value, "|>+-") == "" { // the mark of a text that follows
		one.text = ""
	}
	return one
}

// more takes a line that belongs to the key above.
func (f *field) more(row string) {
	trimmed := strings.TrimSpace(row)
	if entry, ok := strings.CutPrefix(trimmed, "- "); ok && f.key != "description" && f.text == "" {
		f.list = append(f.list, unquoted(strings.TrimSpace(entry)))
		return
	}
	if f.key != "description" {
		f.shape = isOther
		return
	}
	f.text = strings.TrimSpace(f.text + "\n" + trimmed)
}

// finish decides what the value is, now that all of it has been read.
func (f *field) finish() {
	inner, open := strings.CutPrefix(f.text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	switch {
	case f.shape == isOther:
	case len(f.list) > 0:
		f.shape = isList
	case f.text == "":
		f.shape = isNothing
	case open && closed && f.key != "description":
		f.shape, f.text = isList, ""
		for _, entry := range entries(inner) {
			f.list = append(f.list, unquoted(entry))
		}
	default:
		f.text = unquoted(f.text)
	}
}

// unquoted is a text without the quotes around it.
func unquoted(text string) string {
	for _, quote := range []string{`"`, `'`} {
		inner, open := strings.CutPrefix(text, quote)
		inner, closed := strings.CutSuffix(inner, quote)
		if open && closed {
			return inner
		}
	}
	return text
}

// entries takes a list apart whose parts are separated by commas or blanks, of which
// those within brackets and quotes separate nothing: Bash(git add:*), Read.
func entries(text string) []string {
	var all []string
	depth, quote, start := 0, byte(0), 0
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth = max(0, depth-1)
		case depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\n'):
			all = append(all, text[start:i])
			start = i + 1
		}
	}
	all = append(all, text[start:])
	kept := all[:0]
	for _, entry := range all {
		if entry = strings.TrimSpace(entry); entry != "" {
			kept = append(kept, entry)
		}
	}
	return kept
}
