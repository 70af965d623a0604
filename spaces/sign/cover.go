package sign

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// Covers reports whether the signature is over the whole of a file, whose rest
// is what [Split] left of it. It says nothing about who made the signature.
//
// A file whose lines all end in CRLF is also covered by the hash of its LF form,
// where the language reads both alike: systems that convert line ends on reading
// and on checking out sign that form.
func (s Signature) Covers(rest []byte, ext string) bool {
	if s.Hash == contentHash(rest, ext) {
		return true
	}
	return readsLineEndsAlike(ext) && isCRLF(rest) && s.Hash == contentHash(toLF(rest), ext)
}

// CoversDirectiveBlock reports whether the signature is only over the XML of a
// directive, the way the original system signs: from the first <directive to the
// last </directive>. The text around it can then be anything. It is false when
// another block behind the signed one could be read in its place.
func (s Signature) CoversDirectiveBlock(rest []byte) bool {
	const open, end = "<directive", "</directive>"
	text := toLF(rest)
	from, to := bytes.Index(text, []byte(open)), bytes.LastIndex(text, []byte(end))
	if from < 0 || to < from {
		return false
	}
	to += len(end)
	return s.Hash == hashOf(text[from:to]) && !opensXML(text[to:])
}

// opensXML reports whether a fenced xml block begins in the text.
func opensXML(text []byte) bool {
	for line := range bytes.Lines(text) {
		info, ok := bytes.CutPrefix(line, []byte("```"))
		if ok && bytes.EqualFold(bytes.TrimSpace(info), []byte("xml")) {
			return true
		}
	}
	return false
}

// CoversBelowFrontMatter reports whether the signature is only over the text of
// a knowledge entry, the way the original system signs one that begins with
// front matter. The metadata can then be anything.
func (s Signature) CoversBelowFrontMatter(rest []byte) bool {
	const fence = "---"
	text, ok := bytes.CutPrefix(toLF(rest), []byte(fence))
	if !ok {
		return false
	}
	_, text, ok = bytes.Cut(text, []byte(fence))
	return ok && s.Hash == hashOf(bytes.TrimSpace(text))
}

// contentHash hashes a file whose signature line has been taken out.
func contentHash(rest []byte, ext string) string {
	line := shebang(rest, ext)
	if len(line) > 0 && plainShebang().Match(line) {
		rest = rest[len(line):]
	}
	return hashOf(rest)
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// plainShebang is a shebang that the hash leaves out: a program and its
// arguments. Any other is hashed, for it might say more than which program to
// run: Python reads "coding=" out of it, and a model reads prose.
var plainShebang = lazily(`^#![ \t]*/[A-Za-z0-9_./+-]{1,128}(?:[ \t]+[A-Za-z0-9_./+-]{1,32}){0,3}[ \t]*\r?\n?$`)

// shebang is the shebang line of a script with its line break. In Markdown and
// in data "#!" is text.
func shebang(src []byte, ext string) []byte {
	if !isScript(ext) || !bytes.HasPrefix(src, []byte("#!")) {
		return nil
	}
	return firstLine(src)
}

func isScript(ext string) bool {
	switch ext {
	case ".py", ".sh", ".js", ".mjs", ".cjs", ".ts":
		return true
	default:
		return false
	}
}

// readsLineEndsAlike is false for a shell, to which a CR is part of a word.
func readsLineEndsAlike(ext string) bool {
	switch ext {
	case ".md", ".yaml", ".yml", ".toml", ".py", ".js", ".mjs", ".cjs", ".ts":
		return true
	default:
		return false
	}
}

// isCRLF reports whether every line that ends does so in CRLF. A file with both
// line ends was changed by hand, not by a conversion.
func isCRLF(text []byte) bool {
	breaks := bytes.Count(text, []byte("\n"))
	return breaks > 0 && breaks == bytes.Count(text, []byte("\r\n"))
}

func toLF(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }
