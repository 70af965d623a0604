package sign

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Signature is a parsed signature line.
type Signature struct {
	Time        time.Time // UTC, whole seconds
	Hash        string    // SHA-256 of what was signed, hex
	Sig         string    // base64url
	Fingerprint string    // of the key
	Provenance  string    // "provider@user" of the registry it came through; empty for most
}

// signatureText is what stands in the comment. It is anchored, so that prose
// which mentions a signature is not taken for one.
var signatureText = regexp.MustCompile(`^rye:signed:` +
	`(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z):` +
	`([0-9a-f]{64}):` +
	`([A-Za-z0-9_-]+={0,2}):` +
	`([0-9a-f]{16})` +
	`(?:\|([^\s|@]+@[^\s|@]+))?$`)

// comment is how a language writes a comment of one line.
type comment struct {
	open, close string
}

var (
	markupComment = comment{open: "<!--", close: "-->"}
	hashComment   = comment{open: "#"}
	slashComment  = comment{open: "//"}
)

// commentOf gives the comment of a file extension with its dot; unknown ones
// use "#".
func commentOf(ext string) comment {
	switch ext {
	case ".md":
		return markupComment
	case ".js", ".mjs", ".cjs", ".ts":
		return slashComment
	default:
		return hashComment
	}
}

// format puts text into the comment.
func (c comment) format(text string) string {
	if c.close == "" {
		return c.open + " " + text
	}
	return c.open + " " + text + " " + c.close
}

// text takes a line's text out of the comment.
func (c comment) text(line string) (string, bool) {
	line, opened := strings.CutPrefix(line, c.open)
	line, closed := strings.CutSuffix(strings.TrimSpace(line), c.close)
	return strings.TrimSpace(line), opened && closed
}

// Parse reads a signature line in any comment style, with or without its line
// break.
func Parse(line string) (Signature, bool) {
	for _, c := range []comment{markupComment, hashComment, slashComment} {
		if sig, ok := c.parse(line); ok {
			return sig, true
		}
	}
	return Signature{}, false
}

func (c comment) parse(line string) (Signature, bool) {
	text, ok := c.text(line)
	if !ok {
		return Signature{}, false
	}
	m := signatureText.FindStringSubmatch(text)
	if m == nil {
		return Signature{}, false
	}
	at, err := time.Parse(time.RFC3339, m[1])
	if err != nil {
		return Signature{}, false
	}
	return Signature{Time: at, Hash: m[2], Sig: m[3], Fingerprint: m[4], Provenance: m[5]}, true
}

// String is the text of the signature without a comment around it.
func (s Signature) String() string {
	text := fmt.Sprintf("rye:signed:%s:%s:%s:%s", s.Time.UTC().Format(time.RFC3339), s.Hash, s.Sig, s.Fingerprint)
	if s.Provenance != "" {
		text += "|" + s.Provenance
	}
	return text
}

// byteOrderMark may stand before the first line of a UTF-8 file.
var byteOrderMark = []byte("\xef\xbb\xbf")

// Split takes the signature line out of a file with the given extension. A file
// without one comes back unchanged, with a nil signature.
func Split(src []byte, ext string) (sig *Signature, rest []byte) {
	head := headLength(src, ext)
	line := firstLine(src[head:])
	parsed, ok := commentOf(ext).parse(string(line))
	if !ok {
		return nil, src
	}
	rest = make([]byte, 0, len(src)-len(line))
	rest = append(rest, src[:head]...)
	rest = append(rest, src[head+len(line):]...)
	return &parsed, rest
}

// Attach signs a file and returns it with the signature line in place, instead
// of an earlier one if there is one. The line ends the way the file's first line
// does. It is placed after a byte order mark or a shebang.
func Attach(src []byte, ext string, k *Key, at time.Time) []byte {
	_, rest := Split(src, ext)
	hash := contentHash(rest, ext)
	sig := Signature{
		Time:        at.UTC().Truncate(time.Second),
		Hash:        hash,
		Sig:         k.Sign(hash),
		Fingerprint: k.Fingerprint(),
	}
	lineBreak := "\n"
	if bytes.HasSuffix(firstLine(rest), []byte("\r\n")) {
		lineBreak = "\r\n"
	}
	head := headLength(rest, ext)
	line := commentOf(ext).format(sig.String()) + lineBreak
	signed := make([]byte, 0, len(rest)+len(line)+len(lineBreak))
	signed = append(signed, rest[:head]...)
	if shebang := rest[:head]; bytes.HasPrefix(shebang, []byte("#!")) && !bytes.HasSuffix(shebang, []byte("\n")) {
		signed = append(signed, lineBreak...)
	}
	signed = append(signed, line...)
	return append(signed, rest[head:]...)
}

// Check verifies the signature of a file against k. The error is ErrUnsigned
// when there is none and ErrBadSignature when another key made it, when the
// content was changed, or when it is not genuine.
func Check(src []byte, ext string, k *Key) error {
	sig, rest := Split(src, ext)
	if sig == nil {
		return ErrUnsigned
	}
	if sig.Fingerprint != k.Fingerprint() {
		return fmt.Errorf("%w: made by key %s, not by %s", ErrBadSignature, sig.Fingerprint, k.Fingerprint())
	}
	if contentHash(rest, ext) != sig.Hash {
		return fmt.Errorf("%w: the content was changed after signing", ErrBadSignature)
	}
	return k.Verify(sig.Hash, sig.Sig)
}

// contentHash hashes a file whose signature line has been taken out.
func contentHash(rest []byte, ext string) string {
	sum := sha256.Sum256(rest[len(shebang(rest, ext)):])
	return hex.EncodeToString(sum[:])
}

// headLength is the length of what stands before a signature line: a byte order
// mark or a shebang line.
func headLength(src []byte, ext string) int {
	if bytes.HasPrefix(src, byteOrderMark) {
		return len(byteOrderMark)
	}
	return len(shebang(src, ext))
}

// shebang is the shebang line of a script with its line break. Markdown is no
// script; "#!" is text there.
func shebang(src []byte, ext string) []byte {
	if ext == ".md" || !bytes.HasPrefix(src, []byte("#!")) {
		return nil
	}
	return firstLine(src)
}

// firstLine is the first line with its line break, if it has one.
func firstLine(src []byte) []byte {
	if end := bytes.IndexByte(src, '\n'); end >= 0 {
		return src[:end+1]
	}
	return src
}
