package sign

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// written is the form of a signature as one expression; kind and id are checked
// further by decodeName.
var written = regexp.MustCompile(`^rye:signed:(v2:)?` +
	`(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z):` +
	`([0-9a-f]{64}):` +
	`([A-Za-z0-9_-]+={0,2}):` +
	`([0-9a-f]{16})` +
	`(?::([a-z_]+):([A-Za-z0-9/._%-]+))?` +
	`(?:\|([A-Za-z0-9_-]+@[A-Za-z0-9_-]+))?$`)

// byExpression is parseText by that expression.
func byExpression(text string) (Signature, bool) {
	m := written.FindStringSubmatch(text)
	if m == nil || (m[1] != "") != (m[6] != "") {
		return Signature{}, false
	}
	sig := Signature{Hash: m[3], Sig: m[4], Fingerprint: m[5], Provenance: m[8]}
	if m[1] != "" {
		var ok bool
		if sig.Name, ok = decodeName(m[6], m[7]); !ok {
			return Signature{}, false
		}
	}
	at, err := time.Parse(time.RFC3339, m[2])
	sig.Time = at
	return sig, err == nil
}

func sameReading(t interface{ Fatalf(string, ...any) }, text string) {
	got, ok := parseText(text)
	want, wantOK := byExpression(text)
	if ok != wantOK || ok && got != want {
		t.Fatalf("%q is read as %+v (%t), want %+v (%t)", text, got, ok, want, wantOK)
	}
}

var signatures = []string{
	"rye:signed:2026-03-29T05:38:21Z:" + strings.Repeat("5b8f", 16) + ":k2ITK43n-_==:c6fcdd042a139020",
	"rye:signed:2026-03-29T05:38:21Z:" + strings.Repeat("5b8f", 16) + ":k2ITK43n:c6fcdd042a139020|hub@ada",
	"rye:signed:v2:2026-03-29T05:38:21Z:" + strings.Repeat("5b8f", 16) + ":k2ITK43n:c6fcdd042a139020:directive:team/deploy.v2%20",
	"rye:signed:v2:2026-03-29T05:38:21Z:" + strings.Repeat("5b8f", 16) + ":k2ITK43n=:c6fcdd042a139020:tool:deploy|hub@ada",
}

// TestParseText: whatever becomes of a signature's text, it is read as the expression
// of its form reads it.
func TestParseText(t *testing.T) {
	t.Parallel()
	for _, text := range signatures {
		if _, ok := parseText(text); !ok {
			t.Errorf("%s is not read", text)
		}
		sameReading(t, text)
	}
	pieces := rapid.SampledFrom([]string{
		"", ":", "|", "@", "=", "==", "===", "v2:", "2", "Z", "T", ".5", "+", "\n", "\x80", "é", "/", "%2F", "..", "tool", ":tool:a", "rye:signed:", "0", "g", "A",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom(signatures).Draw(t, "text")
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			from := rapid.IntRange(0, len(text)).Draw(t, "from")
			to := min(len(text), from+rapid.SampledFrom([]int{0, 0, 1, 2, 16, 64}).Draw(t, "length"))
			text = text[:from] + pieces.Draw(t, "piece") + text[to:]
		}
		sameReading(t, text)
	})
}

func FuzzParseText(f *testing.F) {
	for _, text := range signatures {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { sameReading(t, text) })
}
