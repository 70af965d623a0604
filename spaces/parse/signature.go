package parse

import (
	"bytes"
	"strings"
)

// StripSignature returns src without its signature: the comment lines with
// rye:signed, or the marker rye:unsigned, that stand together on line 1 or
// below a shebang. It knows the comment signs of all languages an item may be
// written in. Source without a signature is returned as it is. The result
// shares memory with src unless a shebang had to be joined to what follows.
func StripSignature(src []byte) []byte {
	shebang, rest := cutShebang(src)
	signed := false
	for {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		if !isSignature(line) {
			break
		}
		rest, signed = after, true
	}
	switch {
	case !signed:
		return src
	case len(shebang) == 0:
		return rest
	}
	return append(bytes.Clone(shebang), rest...)
}

// cutShebang splits src behind a "#!" line. The line keeps its line end.
func cutShebang(src []byte) (shebang, rest []byte) {
	if !bytes.HasPrefix(bytes.TrimPrefix(src, byteOrderMark()), []byte("#!")) {
		return nil, src
	}
	if end := bytes.IndexByte(src, '\n'); end >= 0 {
		return src[:end+1], src[end+1:]
	}
	return src, nil
}

// isSignature reports whether line is a comment that holds a signature or the
// marker of an item that was left unsigned on purpose.
func isSignature(line []byte) bool {
	// A signature line has at most about 3 300 bytes; a bound keeps
	// the check cheap on minified files.
	const most = 4096
	if len(line) > most {
		return false
	}
	text := strings.TrimSpace(string(bytes.TrimPrefix(line, byteOrderMark())))
	for _, sign := range []string{"<!--", "/*", "//", "--", "#", ";", "%"} {
		if comment, ok := strings.CutPrefix(text, sign); ok {
			comment = strings.TrimSpace(comment)
			return strings.HasPrefix(comment, "rye:signed:") || strings.HasPrefix(comment, "rye:unsigned")
		}
	}
	return false
}
