package item

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// MaxShown is how many bytes a name may have that messages repeat.
const MaxShown = 64

// plainName is the form of ids, of patterns of them, and of the names of models.
var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.:*/@#+-]+$`) })

// IsPlain reports whether messages repeat a name as it is.
func IsPlain(name string) bool { return len(name) <= MaxShown && plainName().MatchString(name) }

// shownName is what messages repeat: the form of ids, with the signs of amounts, lists and
// paths, in alphabets whose sentences have blanks and whose letters run from left to right.
var shownName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_.:*/@#+$%=,~\\\p{Latin}\p{Greek}\p{Cyrillic}-]+$`)
})

func isShown(name string) bool { return len(name) <= MaxShown && shownName().MatchString(name) }

// Shown is a name from a file, or of one, as messages repeat it. Models take messages
// for the words of rye-mcp, and somebody else's file can hold a sentence where a name
// belongs: only what is one word is repeated, and of the rest how long it
// is. The place of the name stands elsewhere in the message.
func Shown(name string) string {
	if name == "" || isShown(name) {
		return name
	}
	return fmt.Sprintf("(a name of %d bytes)", len(name))
}

// ShownAll are several names for one message.
func ShownAll(names []string) []string {
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = Shown(name)
	}
	return shown
}

// quotation is a name as the libraries quote it that read YAML, TOML, XML and JSON
// Schema: as a Go string, or between other signs.
var quotation = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|'[^']*'|`[^`]*`|<[^<>]*>|&[^;]*;")
})

// ShownIn is the message of such a library without the names that [Shown] does not
// repeat.
func ShownIn(message string) string {
	return quotation().ReplaceAllStringFunc(message, func(quoted string) string {
		name := quoted[1 : len(quoted)-1]
		if plain, err := strconv.Unquote(quoted); err == nil && quoted[0] != '\'' {
			name = plain
		}
		name = strings.TrimSuffix(strings.TrimPrefix(name, "/"), "...")
		if name == "" || isShown(name) || ownWords[name] {
			return quoted
		}
		return Shown(name)
	})
}

// ownWords are between quotation marks in messages of the libraries themselves.
var ownWords = map[string]bool{",": true, "]": true, "}": true, "[]}]": true, "-": true, "document start": true, "!": true, "=": true}
