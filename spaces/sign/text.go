package sign

import (
	"strings"
	"time"
)

// parseText reads what stands in the comment of a signature line:
//
//	rye:signed:[v2:]TIME:HASH:SIGNATURE:FINGERPRINT[:KIND:ID][|PROVIDER@USER]
//
// It is the whole comment, so that prose which mentions a signature is not taken for
// one. Time and provenance are not signed, so their alphabet leaves no room for what a
// language would read out of a comment on its first lines, such as Python's "coding=".
// It is read by hand: every thread's process reads one, and compiling an expression for
// it cost ten times as much.
func parseText(text string) (Signature, bool) {
	rest, ok := strings.CutPrefix(text, "rye:signed:")
	if !ok {
		return Signature{}, false
	}
	rest, bound := strings.CutPrefix(rest, versionMark)
	rest, provenance, through := strings.Cut(rest, "|")
	if through && !isProvenance(provenance) {
		return Signature{}, false
	}
	if len(rest) < len(timeForm)+1 || rest[len(timeForm)] != ':' {
		return Signature{}, false
	}
	at, ok := parseTime(rest[:len(timeForm)])
	fields := strings.Split(rest[len(timeForm)+1:], ":")
	if !ok || len(fields) < 3 || !isHex(fields[0], 64) || !isBase64(fields[1]) || !isHex(fields[2], 16) {
		return Signature{}, false
	}
	sig := Signature{Time: at, Hash: fields[0], Sig: fields[1], Fingerprint: fields[2], Provenance: provenance}
	switch {
	case !bound:
		return sig, len(fields) == 3
	case len(fields) != 5 || !consistsOf(fields[3], isKindByte) || !consistsOf(fields[4], isIDByte):
		return Signature{}, false
	}
	sig.Name, ok = decodeName(fields[3], fields[4])
	return sig, ok
}

const timeForm = "2006-01-02T15:04:05Z"

// parseTime takes that form alone; [time.Parse] also takes fractions of seconds.
func parseTime(text string) (time.Time, bool) {
	for i := range timeForm {
		if isDigit(timeForm[i]) != isDigit(text[i]) {
			return time.Time{}, false
		}
	}
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}

// isProvenance reports whether a text is provider@user.
func isProvenance(text string) bool {
	provider, user, ok := strings.Cut(text, "@")
	return ok && consistsOf(provider, isWordByte) && consistsOf(user, isWordByte)
}

func isBase64(text string) bool {
	const most = 2 // signs that fill the last group
	digits := strings.TrimRight(text, "=")
	return len(text)-len(digits) <= most && consistsOf(digits, isWordByte)
}

func isHex(text string, length int) bool {
	return len(text) == length && consistsOf(text, func(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' })
}

// consistsOf reports whether a text is not empty, and all its bytes are of a kind.
func consistsOf(text string, kind func(byte) bool) bool {
	for i := range len(text) {
		if !kind(text[i]) {
			return false
		}
	}
	return text != ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWordByte(c byte) bool {
	return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '-'
}

func isKindByte(c byte) bool { return 'a' <= c && c <= 'z' || c == '_' }

func isIDByte(c byte) bool { return isWordByte(c) || strings.IndexByte("/.%", c) >= 0 }
