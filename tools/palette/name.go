package palette

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxName is the longest tool name that every provider takes; the characters
// they all take are letters, digits, "_" and "-", of which a digit and "-" are
// not everywhere allowed to be first. These names go to a provider as they are;
// those that MCP clients put a prefix before are the names of the primary
// actions only.
const maxName = 64

// FlatName is the name a model calls a tool by: rye/file-system/read becomes
// rye_file_system_read. A hash of the id makes up for what is lost of it
// without a trace (a letter beyond ASCII, the end of a long id).
func FlatName(id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, id)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	if len(name) > maxName || strings.ContainsFunc(id, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return withHash(name, id, 0)
	}
	return name
}

// shortHash is how many bytes of a hash tell the ids of a project apart.
const shortHash = 4

// withHash ends name with a hash of id; each try has another one.
func withHash(name, id string, try int) string {
	sum := sha256.Sum256([]byte(id + strings.Repeat("\x00", try))) // which no id has
	suffix := "_" + hex.EncodeToString(sum[:shortHash])
	return name[:min(len(name), maxName-len(suffix))] + suffix
}

// reservedNames are taken whether or not they are offered, so that no tool ever
// goes by the name of something else.
func reservedNames(in Input) map[string]bool {
	reserved := map[string]bool{
		"rye_execute": true, "rye_fetch": true, "rye_search": true, "rye_sign": true,
		ReturnName: true, ArtifactName: true,
	}
	for _, d := range in.Primaries {
		reserved[d.ID] = true
	}
	return reserved
}

// nameTools gives every tool its name. A built-in tool has its flat name; of
// several other tools with the same flat name, as a/b-c and a/b/c, each has it
// with a hash of its id. So a name depends on nothing but the ids there are, and
// one that a model has learned never comes to mean another tool.
func nameTools(in Input) map[string]string {
	taken := reservedNames(in)
	names := make(map[string]string, len(in.Tools)+len(in.Items))
	for _, id := range idsOf(in.Tools, nil) {
		if name := FlatName(id); !taken[name] {
			names[id], taken[name] = name, true
		}
	}
	rivals := map[string][]string{}
	for _, id := range idsOf(in.Tools, in.Items) {
		if names[id] == "" {
			rivals[FlatName(id)] = append(rivals[FlatName(id)], id)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rivals)) {
		if ids := rivals[name]; len(ids) == 1 && !taken[name] {
			names[ids[0]], taken[name] = name, true
			delete(rivals, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rivals)) {
		for _, id := range rivals[name] {
			for try := 0; names[id] == ""; try++ {
				if hashed := withHash(name, id, try); !taken[hashed] {
					names[id], taken[hashed] = hashed, true
				}
			}
		}
	}
	return names
}

// idsOf lists the ids of tools and items, each once, sorted.
func idsOf(tools []tool.Definition, items []Item) []string {
	ids := make([]string, 0, len(tools)+len(items))
	for _, d := range tools {
		ids = append(ids, d.ID)
	}
	for _, i := range items {
		ids = append(ids, i.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
