package sign

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestHolds: every signature line is recognised, whatever is put around it, and
// text that only speaks of signatures is not.
func TestHolds(t *testing.T) {
	t.Parallel()
	key, err := Generate(t.TempDir(), false, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOf(rapid.Byte()).Draw(t, "content")
		ext := rapid.SampledFrom([]string{".md", ".py", ".ts", ".yaml"}).Draw(t, "extension")
		sig := Signature{Time: time.Unix(0, 0), Hash: contentHash(src, ext), Fingerprint: key.Fingerprint()}
		sig.Sig = key.Sign(sig.Hash)
		line := commentOf(ext).format(sig.String())
		around := rapid.StringMatching("[ a-z#|]*")
		shown := around.Draw(t, "before") + line + around.Draw(t, "behind")
		if !Holds([]byte(shown)) {
			t.Fatalf("not recognised: %s", shown)
		}
		if got := Hide("a\n" + shown + "\r\nb"); got != "a\nb" {
			t.Fatalf("left over: %q", got)
		}
	})
	for _, line := range []string{"rye:signed:", "# rye:signed:TIMESTAMP:HASH:SIG:KEY", "rye:unsigned", strings.Repeat("a", 64), "# rye:signed:2026-01-01T00:00:00Z"} {
		if Holds([]byte(line)) || Hide(line) != line {
			t.Errorf("%q holds no signature", line)
		}
	}
}
