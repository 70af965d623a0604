package guard

import (
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// signatureMark is in every signature line.
const signatureMark = "rye:signed:"

// numbered is what rye/file-system/read puts before a line.
var numbered = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d+:[0-9a-f]{6}\|`) })

const byteOrderMark = "\ufeff"

// stripSignature takes the signature line out of a text: the first line, or the
// second below a shebang. Only a line that is a whole signature is one; what
// merely mentions one, and what stands further down, is content.
func stripSignature(text string) string {
	head, rest := "", text
	if line, after := cutLine(rest); strings.HasPrefix(bare(line), "#!") {
		head, rest = line, after
	}
	line, after := cutLine(rest)
	if _, ok := sign.Parse(bare(line)); !ok {
		return text
	}
	return head + after
}

// bare is a line without what a tool or an editor has put before it.
func bare(line string) string {
	return strings.TrimPrefix(line[len(numbered().FindString(line)):], byteOrderMark)
}

func cutLine(text string) (line, rest string) {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1], text[i+1:]
	}
	return text, ""
}
