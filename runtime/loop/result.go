package loop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// keepBytes is the longest tool result that is given to the model whole; a
// longer one is kept as an artifact of which the model sees head and tail.
const keepBytes = 24_000

// keep bounds a result. What is left out can be read from the artifact.
func (r *run) keep(text string) string {
	if len(text) <= keepBytes {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	path, err := r.folder().WriteArtifact(hex.EncodeToString(sum[:]), []byte(text))
	where := "it could not be kept"
	if err == nil {
		if rel, relErr := filepath.Rel(r.Project, path); relErr == nil {
			where = "the whole text is in " + filepath.ToSlash(rel)
		}
	} else {
		r.Log.Warn().Err(err).Msg("keep a large result")
	}
	head, tail := text[:keepBytes*2/3], text[len(text)-keepBytes/3:]
	return fmt.Sprintf("%s\n… [%d bytes left out; %s] …\n%s",
		strings.ToValidUTF8(head, ""), len(text)-len(head)-len(tail), where, strings.ToValidUTF8(tail, ""))
}

// encode writes a result as JSON for a model, without escaping what HTML would
// need.
func encode(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return encode(tool.Faultf(tool.CodeToolFailed, "the result cannot be shown: %w", err).Body())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// clip shows the beginning of bad input.
func clip(b []byte) string {
	const most = 200
	if len(b) <= most {
		return string(b)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(b[cut]) {
		cut--
	}
	return string(b[:cut]) + "…"
}
