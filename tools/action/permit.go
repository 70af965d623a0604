package action

import (
	"path/filepath"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// capability is the one that action needs on an item.
func capability(action string, kind item.Kind, id string) string {
	return "rye." + action + "." + string(kind) + "." + strings.ReplaceAll(id, "/", ".")
}

// capabilitiesFor lists the capabilities of which one is enough. A directive
// may also be executed by whoever may use the older tool for it, and search
// and fetch imply each other.
func capabilitiesFor(action string, kind item.Kind, id string) []string {
	switch {
	case action == "execute" && kind == item.Directive:
		return []string{capability(action, kind, id), capability(action, item.Tool, ThreadDirectiveID)}
	case action == "fetch":
		return []string{capability("fetch", kind, id), capability("search", kind, id)}
	default:
		return []string{capability(action, kind, id)}
	}
}

// permit passes when the caller holds one of the capabilities. The refusal
// names the first.
func permit(c Caller, capabilities ...string) error {
	if !c.InThread || c.Hook != nil && c.Hook.Exempt {
		return nil
	}
	if c.Allow == nil {
		return tool.Faultf(tool.CodePermissionDenied, "this thread's permissions are not known, so nothing is allowed").
			With("missing_capability", capabilities[0])
	}
	first := c.Allow(capabilities[0])
	if first == nil {
		return nil
	}
	for _, other := range capabilities[1:] {
		if c.Allow(other) == nil {
			return nil
		}
	}
	return first
}

// checkProject keeps a thread in its own project. For other callers the path
// has been resolved before.
func checkProject(c Caller, path string) error {
	if !c.InThread || path == "" || filepath.Clean(path) == filepath.Clean(c.Env.Project) {
		return nil
	}
	return tool.Faultf(tool.CodeOutsideProject, "a thread works in its own project, %s", c.Env.Project).
		WithHint("Leave project_path out.")
}
