package item

import (
	"fmt"
	"strings"
)

// Dir is the folder of the kind below .ai.
func (k Kind) Dir() string {
	switch k {
	case Directive:
		return "directives"
	case Tool:
		return "tools"
	case Knowledge:
		return "knowledge"
	}
	return ""
}

// Extensions lists the file extensions of the kind with their dot. Where an id
// exists with several, the first one here wins.
func (k Kind) Extensions() []string {
	switch k {
	case Directive:
		return []string{".md"}
	case Tool:
		return []string{".py", ".yaml", ".yml", ".sh", ".js", ".mjs", ".cjs", ".ts"}
	case Knowledge:
		return []string{".md", ".yaml", ".yml"}
	}
	return nil
}

// ParseKind reads the name of a kind as it stands in item_type.
func ParseKind(s string) (Kind, error) {
	names := make([]string, 0, len(Kinds()))
	for _, k := range Kinds() {
		if s == string(k) {
			return k, nil
		}
		names = append(names, string(k))
	}
	return "", fmt.Errorf("item type %q is unknown; use %s", Shown(s), strings.Join(names, ", "))
}
