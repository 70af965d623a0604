package sign

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Signature is a parsed signature line.
type Signature struct {
	// Name is what the signature is for, as the line says. An older signature is for
	// any content with the hash, and has none.
	Name        Name
	Time        time.Time // as the line says: not signed; UTC, whole seconds
	Hash        string    // SHA-256 of what was signed, hex
	Sig         string    // base64url
	Fingerprint string    // of the key
	Provenance  string    // "provider@user" of the registry it came through, as the line says; empty for most
}

// versionMark stands in signatures that are for a name. Where it stands the
// original system expects the time, so that it takes the line for no signature,
// not for one that is not genuine, and yet replaces it when it signs.
const versionMark = "v2:"

// lazily compiles an expression when it is first needed: counted repetitions make
// that dear, and few processes look at signatures.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// maxLine bounds a signature line: most have about 300 bytes, one for the longest
// id all of whose bytes are encoded 3 300, and a minified file may be one line.
const maxLine = 4 << 10

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
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	line, opened := strings.CutPrefix(line, c.open)
	line, closed := strings.CutSuffix(strings.Trim(line, " \t"), c.close)
	return strings.Trim(line, " \t"), opened && closed
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
	if len(line) > maxLine {
		return Signature{}, false
	}
	text, ok := c.text(line)
	if !ok {
		return Signature{}, false
	}
	return parseText(text)
}

// Bound reports whether the signature is for one name, as opposed to an older one.
func (s Signature) Bound() bool { return s.Name != Name{} }

// VerifyBy checks that the holder of a key made the signature for its hash and
// its name. Any failure is an ErrBadSignature. Whether hash and name are those of
// a file is not asked, see [Signature.Covers].
func (s Signature) VerifyBy(key *PublicKey) error {
	if !s.Bound() {
		return key.Verify(s.Hash, s.Sig)
	}
	return key.verify(s.Name.message(s.Hash), s.Sig)
}

// String is the text of the signature without a comment around it.
func (s Signature) String() string {
	var text strings.Builder
	text.WriteString("rye:signed:")
	if s.Bound() {
		text.WriteString(versionMark)
	}
	fmt.Fprintf(&text, "%s:%s:%s:%s", s.Time.UTC().Format(time.RFC3339), s.Hash, s.Sig, s.Fingerprint)
	if s.Bound() {
		text.WriteString(":" + s.Name.encode())
	}
	if s.Provenance != "" {
		text.WriteString("|" + s.Provenance)
	}
	return text.String()
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
	return &parsed, slices.Concat(src[:head], src[head+len(line):])
}

// Resembles reports whether the line where [Split] expects a signature mentions
// one: a file for which Split finds none has then a damaged one.
func Resembles(src []byte, ext string) bool {
	line := firstLine(src[headLength(src, ext):])
	return bytes.Contains(line[:min(len(line), maxLine)], []byte("rye:signed:"))
}

// Attach signs a file as what its name says and returns it with the signature line
// in place, instead of an earlier one if there is one. The line ends the way the
// file's first line does. It is placed after a byte order mark and a shebang. The
// error is about the name.
func Attach(src []byte, ext string, name Name, k *Key, at time.Time) ([]byte, error) {
	if err := name.check(); err != nil {
		return nil, err
	}
	_, rest := Split(src, ext)
	lineBreak := "\n"
	if bytes.HasSuffix(firstLine(rest), []byte("\r\n")) {
		lineBreak = "\r\n"
	}
	head := rest[:headLength(rest, ext)]
	rest = rest[len(head):]
	if bytes.Contains(head, []byte("#!")) && !bytes.HasSuffix(head, []byte("\n")) {
		head = slices.Concat(head, []byte(lineBreak))
	}
	hash := contentHash(slices.Concat(head, rest), ext)
	sig := Signature{
		Name:        name,
		Time:        at.UTC().Truncate(time.Second),
		Hash:        hash,
		Sig:         k.sign(name.message(hash)),
		Fingerprint: k.Fingerprint(),
	}
	return slices.Concat(head, []byte(commentOf(ext).format(sig.String())+lineBreak), rest), nil
}

// Check verifies that k signed a file as what its name says. The error is
// ErrUnsigned when there is no signature, ErrUnbound when it is a genuine older
// one, which is for no name, ErrOtherItem when it is for another name, and
// ErrBadSignature when another key made it, when the content was changed, or when
// it is not genuine.
func Check(src []byte, ext string, name Name, k *Key) error {
	sig, rest := Split(src, ext)
	switch {
	case sig == nil:
		return ErrUnsigned
	case sig.Fingerprint != k.Fingerprint():
		return fmt.Errorf("%w: made by key %s, not by %s", ErrBadSignature, sig.Fingerprint, k.Fingerprint())
	case !sig.Covers(rest, ext):
		return fmt.Errorf("%w: the content was changed after signing", ErrBadSignature)
	}
	if err := sig.VerifyBy(k.Public()); err != nil {
		return err
	}
	switch {
	case !sig.Bound():
		return ErrUnbound
	case sig.Name != name:
		return fmt.Errorf("%w: made for %s", ErrOtherItem, sig.Name)
	}
	return nil
}

// headLength is the length of what stands before a signature line: a byte order mark and
// a shebang line. Node takes a shebang behind the mark, and no other line before it.
func headLength(src []byte, ext string) int {
	rest := bytes.TrimPrefix(src, byteOrderMark)
	return len(src) - len(rest) + len(shebang(rest, ext))
}

// firstLine is the first line with its line break, if it has one.
func firstLine(src []byte) []byte {
	if end := bytes.IndexByte(src, '\n'); end >= 0 {
		return src[:end+1]
	}
	return src
}
