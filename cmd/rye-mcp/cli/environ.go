package cli

import "strings"

// withoutReferences leaves variables out whose value is a reference to themselves. MCP
// clients are configured with such references, and some hand them over as they are when
// the variable is not set: Claude Code 2.1.197 passes the text ${ANTHROPIC_API_KEY}, which
// is no key.
func withoutReferences(environ []string, getenv func(string) string) ([]string, func(string) string) {
	var kept []string
	unset := make(map[string]bool)
	for i, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !isReference(name, value) {
			if len(unset) > 0 {
				kept = append(kept, entry)
			}
			continue
		}
		if len(unset) == 0 {
			kept = append(kept, environ[:i]...)
		}
		unset[name] = true
	}
	if len(unset) == 0 {
		return environ, getenv
	}
	return kept, func(name string) string {
		if unset[name] {
			return ""
		}
		return getenv(name)
	}
}

// isReference reports whether a value is one of the ways to write "the variable of this
// name".
func isReference(name, value string) bool {
	if len(value) <= len(name) || value[0] != '$' && value[0] != '{' {
		return false
	}
	switch value {
	case "$" + name, "${" + name + "}", "${env:" + name + "}", "{env:" + name + "}", "${" + name + ":-}":
		return true
	}
	return false
}
