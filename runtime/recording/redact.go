package recording

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/secret"
)

// Redactor takes out of what leaves this machine what must not: the secrets that are
// known, what looks like a key of a well-known service, and where the user's files lie.
type Redactor struct {
	Secrets *secret.Vault
	Paths   []Path // longer ones first
}

// Path is a folder, and what is written in its place.
type Path struct{ Folder, As string }

// Text is a text without secrets and with short paths, and how many secrets were taken
// out of it. It keeps its format: JSON stays JSON. Data that is no text has only known
// secrets taken out.
func (r Redactor) Text(data []byte) (clean []byte, taken int) {
	masked := r.Secrets.MaskBytes(data)
	if string(masked) != string(data) {
		taken++
	}
	if !utf8.Valid(masked) {
		return masked, taken
	}
	text, shaped := secret.RemoveShaped(string(masked))
	taken += shaped
	for _, p := range r.Paths {
		text = shorten(text, p)
	}
	return []byte(text), taken
}

// Observed is what was observed of a run, as a recording would have it.
func (r Redactor) Observed(o Observed) (Observed, error) {
	data, err := encode(o)
	if err != nil {
		return o, err
	}
	var clean Observed
	data, _ = r.Text(data)
	return clean, json.Unmarshal(data, &clean)
}

// shorten writes another name for a folder, where that is a whole path or the beginning
// of one.
func shorten(text string, p Path) string {
	if len(p.Folder) < 2 || !strings.Contains(text, p.Folder) {
		return text
	}
	var b strings.Builder
	for {
		i := strings.Index(text, p.Folder)
		if i < 0 {
			return b.String() + text
		}
		end := i + len(p.Folder)
		within := i > 0 && inName(text[i-1]) || end < len(text) && inName(text[end]) && !ends(text[end:])
		b.WriteString(text[:i])
		if within {
			b.WriteString(p.Folder)
		} else {
			b.WriteString(p.As)
		}
		text = text[end:]
	}
}

func inName(c byte) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

// ends reports whether a text goes on with the end of a sentence.
func ends(text string) bool {
	return text[0] == '.' && (len(text) == 1 || !inName(text[1]))
}
