package memory

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/secret"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/builtin/memory"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Bounds of an entry, in characters. An entry is one fact; a longer text is a document,
// and belongs into a knowledge item.
const (
	MaxTitle  = 120
	MaxText   = 2000
	MaxResult = 2500 // of what a thread returned, which is shortened to that
)

// More bounds.
const (
	maxSupersedes  = 20  // keys in one call
	mostSuperseded = 60  // keys that an entry names in all
	maxOrigins     = 8   // who has said the same
	maxOfThread    = 200 // entries of one thread
	maxName        = 200 // bytes of the id of a directive, and of whom a file names
)

// cleanText is what is kept of a text: lines without control and invisible characters, which
// could hide words or the end of an element from people.
func cleanText(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\r\n", "\n")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029' || r == '\u0085':
			return '\n'
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs):
			return -1
		}
		return r
	}, text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// cleanLine is a text on one line.
func cleanLine(text string) string { return strings.Join(strings.Fields(cleanText(text)), " ") }

// cleaned is a title and a text within their bounds, without secrets, and how many of
// those were taken out.
func cleaned(n memory.New) (title, text string, removed int, err error) {
	most := MaxText
	if n.Kind == memory.Result { // of a file that was exported
		most = MaxResult
	}
	if len(n.Title) > utf8.UTFMax*MaxTitle*4 || len(n.Text) > utf8.UTFMax*most*4 {
		return "", "", 0, tooLong("entry", len(n.Title)+len(n.Text), "bytes", most)
	}
	title, inTitle := withoutSecrets(cleanLine(n.Title), n.Mask)
	text, inText := withoutSecrets(cleanText(n.Text), n.Mask)
	switch {
	case title == "":
		return "", "", 0, tool.Faultf(tool.CodeBadArguments, "the title is empty").WithHint("Say the fact in one line.")
	case strings.TrimSpace(text) == "":
		return "", "", 0, tool.Faultf(tool.CodeBadArguments, "the text is empty").WithHint("Say what later threads should know, and why it is so.")
	case utf8.RuneCountInString(title) > MaxTitle:
		return "", "", 0, tooLong("title", utf8.RuneCountInString(title), "characters", most)
	case utf8.RuneCountInString(text) > most:
		return "", "", 0, tooLong("text", utf8.RuneCountInString(text), "characters", most)
	}
	return title, text, inTitle + inText, nil
}

func tooLong(what string, n int, unit string, most int) error {
	return tool.Faultf(tool.CodeBadArguments, "the %s has %d %s; a title has at most %d characters and a text %d", what, n, unit, MaxTitle, most).
		WithHint("Keep the fact and its reason; write several facts as several entries.")
}

// withoutSecrets is a text without the secrets of the thread, and without what looks like
// a key.
func withoutSecrets(text string, mask tool.Masker) (clean string, removed int) {
	if mask != nil {
		if masked := mask.Mask(text); masked != text {
			text, removed = masked, 1
		}
	}
	text, shaped := secret.RemoveShaped(text)
	return text, removed + shaped
}

// kindOf checks the kind of what somebody writes.
func kindOf(k memory.Kind) error {
	if slices.Contains(memory.Written(), k) {
		return nil
	}
	return tool.Faultf(tool.CodeBadArguments, "there is no kind %.40q; valid are %s", string(k), names(memory.Written()))
}

// name is one line of at most maxName bytes.
func name(text string) string {
	return item.Begin(cleanLine(text), maxName)
}

// names are kinds in a sentence.
func names(kinds []memory.Kind) string {
	var all []string
	for _, k := range kinds {
		all = append(all, string(k))
	}
	return strings.Join(all, ", ")
}

// clip is a text within so many characters.
func clip(text string, most int) string {
	for i := range text {
		if most == 0 {
			return strings.TrimRight(text[:i], " \n\t")
		}
		most--
	}
	return text
}
