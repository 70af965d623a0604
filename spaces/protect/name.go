package protect

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Access is what tools may do with a path.
type Access int

// From least to most.
const (
	Nothing Access = iota
	Reading
	Writing
)

// anywhere are names that are protected wherever they stand.
var anywhere = map[string]bool{
	".git":      true,
	"git~1":     true, // its short name on NTFS
	".mcp.json": true,
	".lsp.json": true,
	".envrc":    true,
	// A folder with this one in it is a plugin of Claude Code, which starts its monitors,
	// hooks and servers.
	".claude-plugin": true,
	".opencode":      true, // its plugins and tools are run
	"opencode.json":  true,
	"opencode.jsonc": true,

	".claude.json":               true,
	"claude_desktop_config.json": true,
}

// inside are files of folders of other programs, which those run commands from,
// or start servers from, when somebody opens the project. A star stands for any
// end.
var inside = map[string][]string{
	".claude":  {"settings*"},
	".codex":   {"config.toml", "hooks.json"},
	".cursor":  {"mcp.json", "hooks.json"},
	".gemini":  {"settings*", "extensions"},
	".vscode":  {"tasks.json", "mcp.json"},
	".zed":     {"settings.json", "tasks.json", "debug.json"},
	"hooks":    {"hooks.json"},
	"monitors": {"monitors.json"},
	// Those of the user, where the project is the home or a folder with settings.
	"user":     {"mcp.json"},
	"zed":      {"settings.json", "tasks.json"},
	"windsurf": {"mcp_config.json"},
}

// Patterns are globs of the paths that [ByName] keeps from tools, for programs that
// take no function. They compare without case.
func Patterns() []string {
	all := []string{"**/.ai/state", "**/.ai/config/**/keys", "**/.ai/config/keys"}
	for _, name := range named() {
		all = append(all, "**/"+name)
	}
	for _, pattern := range slices.Clone(all) {
		all = append(all, pattern+"/**")
	}
	slices.Sort(all)
	return all
}

// fixedPaths are the protected files and folders of a project whose place is known, by the
// folder that they are in. A star stands for what the programs read there.
var fixedPaths = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{".ai": {"state", "state/threads", "config/keys"}}
	for _, path := range named() {
		dir, name := filepath.Split(filepath.FromSlash(path))
		if start, open := strings.CutSuffix(name, "*"); open {
			all[dir] = append(all[dir], start+".json", start+".local.json")
		} else {
			all[dir] = append(all[dir], name)
		}
	}
	return all
})

// named are the names and paths of both tables.
func named() []string {
	all := slices.Collect(maps.Keys(anywhere))
	for dir, files := range inside {
		for _, file := range files {
			all = append(all, dir+"/"+file)
		}
	}
	return all
}

// Kept says in words what tools do not touch.
const Kept = "the settings and the state of threads (.ai/config, .ai/state), keys, the user space, .git, and what makes other programs run " +
	"commands (.mcp.json, .claude/settings*, .cursor/mcp.json, .vscode/tasks.json, .envrc and the like)"

// ByName judges a path by its names, from the first on. Names are compared as a
// file system does that knows no case, no trailing dots and no invisible
// characters.
func ByName(names []string) Access {
	access := Writing
	for i, name := range names {
		name = plain(name)
		next := ""
		if i+1 < len(names) {
			next = plain(names[i+1])
		}
		switch {
		case anywhere[name], matches(inside[name], next):
			return Nothing
		case name == ".ai":
			access = min(access, belowAI(names[i+1:]))
		}
	}
	return access
}

// belowAI judges a path below a folder .ai.
func belowAI(names []string) Access {
	if len(names) == 0 {
		return Writing
	}
	switch plain(names[0]) {
	case "state":
		return Nothing
	case "config":
		for _, name := range names[1:] {
			if plain(name) == "keys" {
				return Nothing
			}
		}
		return Reading
	}
	return Writing
}

func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		start, open := strings.CutSuffix(p, "*")
		if name == p || open && strings.HasPrefix(name, start) {
			return true
		}
	}
	return false
}

// Split takes a path apart into its names.
func Split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator || r == '/' })
}

// plain is a name without what some file system takes for no difference: case,
// also that of the letters that fold to ASCII; characters that HFS+ ignores; and
// on NTFS dots and spaces at the end, and the name of a stream.
func plain(name string) string {
	if isPlain(name) {
		return name
	}
	name = strings.Map(func(r rune) rune {
		if ignored(r) {
			return -1
		}
		return lower(r)
	}, name)
	if i := strings.IndexByte(name, ':'); i > 0 {
		name = name[:i]
	}
	return strings.TrimRight(name, ". ")
}

// isPlain recognises most names, which are judged for every file of a tree.
func isPlain(name string) bool {
	for i := range len(name) {
		if c := name[i]; c >= 0x80 || c == ':' || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return name != "" && name[len(name)-1] != '.' && name[len(name)-1] != ' '
}

// lower is the small ASCII letter that a character folds to, or itself.
func lower(r rune) rune {
	if r < unicode.MaxASCII {
		return unicode.ToLower(r)
	}
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		if other >= 'a' && other <= 'z' {
			return other
		}
	}
	return r
}

// ignored are the characters that HFS+ leaves out of account in names.
func ignored(r rune) bool {
	switch {
	case r >= 0x200C && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x206A && r <= 0x206F, r == 0xFEFF:
		return true
	}
	return false
}

// InAI reports whether a path leads below a folder .ai.
func InAI(names []string) bool {
	for i, name := range names {
		if plain(name) == ".ai" {
			return i+1 < len(names)
		}
	}
	return false
}
