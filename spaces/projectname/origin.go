package projectname

import "strings"

// Origin is the URL of the remote origin in a configuration of git; empty when it has none.
// Nothing that a configuration includes or rewrites counts.
// Source: git-config(1), Syntax.
func Origin(config string) string {
	in, found := false, ""
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, closed := strings.Cut(line[1:], "]")
			in, line = closed && isOrigin(head), strings.TrimSpace(rest)
		}
		key, value, ok := strings.Cut(line, "=")
		if in && ok && strings.EqualFold(strings.TrimSpace(key), "url") && found == "" {
			found = plain(value)
		}
	}
	return found
}

// isOrigin reports whether the head of a section is remote "origin".
func isOrigin(head string) bool {
	section, name, _ := strings.Cut(strings.TrimSpace(head), " ")
	return strings.EqualFold(section, "remote") && strings.TrimSpace(name) == `"origin"`
}

// plain is a value without quotes and comments. One that is written in another way than git
// writes URLs says nothing.
func plain(value string) string {
	value = strings.TrimSpace(value)
	if quoted, ok := strings.CutPrefix(value, `"`); ok {
		inner, rest, closed := strings.Cut(quoted, `"`)
		rest = strings.TrimSpace(rest)
		if !closed || rest != "" && rest[0] != '#' && rest[0] != ';' {
			return ""
		}
		value = inner
	} else if i := strings.IndexAny(value, "#;"); i >= 0 {
		value = strings.TrimSpace(value[:i])
	}
	if strings.ContainsAny(value, "\\\"") {
		return ""
	}
	return value
}
