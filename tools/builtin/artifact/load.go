package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"regexp"
	"sort"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxBytes is the longest artifact that is read; what is kept of a tool is
// shorter.
const maxBytes = 64 << 20

// Ref is the reference to an artifact whose content has that SHA-256, in hex: as
// much of it as tells the artifacts of a thread apart.
func Ref(hash string) string { return hash[:min(len(hash), refLength)] }

const refLength = 16

var validRef = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{16,64}$`) })

// Folder are the artifacts in the folder of that path; without one there are none.
type Folder string

// Load implements [tool.Artifacts].
func (f Folder) Load(ref string) ([]byte, error) {
	if !validRef().MatchString(ref) {
		return nil, tool.Faultf(tool.CodeBadArguments, "%.80q is no reference to an artifact", ref).
			WithHint("Give the 16 characters that the shortened result names as its artifact.")
	}
	root, err := os.OpenRoot(string(f))
	if errors.Is(err, fs.ErrNotExist) || f == "" {
		return nil, unknown(ref)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	at := sort.Search(len(entries), func(i int) bool { return entries[i].Name() >= ref })
	if at == len(entries) || !strings.HasPrefix(entries[at].Name(), ref) || !entries[at].Type().IsRegular() {
		return nil, unknown(ref)
	}
	file, _, err := regular.OpenIn(root, entries[at].Name())
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxBytes))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); !strings.HasPrefix(hex.EncodeToString(sum[:]), ref) {
		return nil, tool.Faultf(tool.CodeToolFailed, "artifact %s is not what was kept: its content was changed", ref)
	}
	return data, nil
}

func unknown(ref string) error {
	return tool.Faultf(tool.CodeNotFound, "this thread has no artifact %s", ref).
		WithHint("References come from shortened results of this thread; those of other threads are not readable here.")
}

// member is what is read of an artifact: JSON is indented, and with a path only
// that member of it is there, a text as it is.
func member(content, path string) (string, error) {
	if path == "" {
		return indented([]byte(content)), nil
	}
	dec := json.NewDecoder(strings.NewReader(content))
	dec.UseNumber()
	var data any
	if err := dec.Decode(&data); err != nil || dec.More() {
		return "", tool.Faultf(tool.CodeBadArguments, "the artifact is not JSON, so it has no member %q", path).
			WithHint("Leave path out.")
	}
	if !strings.HasPrefix(path, "[") {
		path = "." + path
	}
	value, ok := expr.Lookup(map[string]any{"whole": data}, "whole"+path) // which may be a list
	if !ok {
		return "", tool.Faultf(tool.CodeNotFound, "the artifact has no member %q", strings.TrimPrefix(path, ".")).
			WithHint("Leave path out to see its members; names are joined by dots, elements are [0].")
	}
	if text, ok := value.(string); ok {
		return text, nil
	}
	return indented([]byte(item.Text(value))), nil
}

// maxIndented is how deep JSON is nested at most that is indented: each level
// makes every line below it longer.
const maxIndented = 32

// depth is how deep valid JSON is nested.
func depth(content []byte) int {
	now, most, quoted := 0, 0, false
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}

// indented is an object or a list on lines of its own, and all else as it is.
func indented(content []byte) string {
	trimmed := bytes.TrimSpace(content)
	if len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' || !json.Valid(trimmed) || depth(trimmed) > maxIndented {
		return string(content)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, trimmed, "", "  "); err != nil {
		return string(content)
	}
	return b.String()
}
