package sign_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// foreignSigned was hashed by Python and signed by OpenSSL with the key of
// testKey.
const foreignSigned = "<!-- rye:signed:2026-03-29T05:38:21Z:" +
	"5b8f826ea5691cd9baf8da17bc9efff33cdb0f0b65ddf47b6dc9d0f4913e0563:" +
	"k2ITK43nDMaaTAwLgXCViH8IL7ya8OpYG3_EoXa3Rp3oPzKN-DMxDj4_1xFofY4yoicKoN2LsBt4E2bkvrPGBg==:" +
	"c6fcdd042a139020 -->\n" +
	"# A note\n\nSigned outside of this program.\n"

var noon = time.Date(2026, 11, 21, 12, 0, 0, 999, time.FixedZone("CET", 3600))

func TestCheckForeign(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	if err := check([]byte(foreignSigned), ".md", key); !errors.Is(err, sign.ErrUnbound) {
		t.Fatalf("error %v, want ErrUnbound: it is genuine, and an older one", err)
	}
	altered := strings.Replace(foreignSigned, "outside", "inside", 1)
	if err := check([]byte(altered), ".md", key); !errors.Is(err, sign.ErrBadSignature) {
		t.Errorf("altered: error %v, want ErrBadSignature", err)
	}
	other, err := sign.Generate(t.TempDir(), false, seed(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := check([]byte(foreignSigned), ".md", other); !errors.Is(err, sign.ErrBadSignature) {
		t.Errorf("other key: error %v, want ErrBadSignature", err)
	}
	_, bare := sign.Split([]byte(foreignSigned), ".md")
	if err := check(bare, ".md", key); !errors.Is(err, sign.ErrUnsigned) {
		t.Errorf("unsigned: error %v, want ErrUnsigned", err)
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	tests := []struct {
		name, ext, src string
		want           string // %SIG% stands for the signature's text
	}{
		{"markdown", ".md", "# T\n", "<!-- %SIG% -->\n# T\n"},
		{"markdown that begins like a script", ".md", "#!x\n", "<!-- %SIG% -->\n#!x\n"},
		{"python", ".py", "x = 1\n", "# %SIG%\nx = 1\n"},
		{"shell", ".sh", "#!/bin/sh\necho\n", "#!/bin/sh\n# %SIG%\necho\n"},
		{"yaml", ".yaml", "a: 1", "# %SIG%\na: 1"},
		{"toml", ".toml", "", "# %SIG%\n"},
		{"typescript", ".ts", "let a\n", "// %SIG%\nlet a\n"},
		{"javascript with shebang", ".mjs", "#!/usr/bin/env node\n1\n", "#!/usr/bin/env node\n// %SIG%\n1\n"},
		{"CRLF", ".py", "#!/x\r\na\r\n", "#!/x\r\n# %SIG%\r\na\r\n"},
		{"shebang without end", ".sh", "#!/bin/sh", "#!/bin/sh\n# %SIG%\n"},
		{"byte order mark", ".yaml", "\xef\xbb\xbfa: 1\n", "\xef\xbb\xbf# %SIG%\na: 1\n"},
		{"byte order mark and shebang", ".mjs", "\xef\xbb\xbf#!/usr/bin/env node\nx\n", "\xef\xbb\xbf#!/usr/bin/env node\n// %SIG%\nx\n"},
		{"byte order mark and shebang alone", ".py", "\xef\xbb\xbf#!/bin/sh", "\xef\xbb\xbf#!/bin/sh\n# %SIG%\n"},
		{"signed before", ".md", foreignSigned, "<!-- %SIG% -->\n# A note\n\nSigned outside of this program.\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := attach([]byte(tt.src), tt.ext, key, noon)
			sig, _ := sign.Split(got, tt.ext)
			if sig == nil {
				t.Fatalf("no signature in %q", got)
			}
			if want := strings.Replace(tt.want, "%SIG%", sig.String(), 1); string(got) != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if want := noon.UTC().Truncate(time.Second); !sig.Time.Equal(want) {
				t.Errorf("time %v, want %v", sig.Time, want)
			}
			if err := check(got, tt.ext, key); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestShebangIsNotCovered(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	signed := attach([]byte("#!/usr/bin/python3\nx = 1\n"), ".py", key, noon)
	moved := bytes.Replace(signed, []byte("/usr/bin/python3"), []byte("/opt/bin/python3"), 1)
	if err := check(moved, ".py", key); err != nil {
		t.Errorf("another interpreter path broke the signature: %v", err)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	text := strings.TrimSuffix(strings.TrimPrefix(strings.SplitN(foreignSigned, "\n", 2)[0], "<!-- "), " -->")
	unpadded := strings.Replace(text, "==:", ":", 1)
	tests := []struct {
		name, line string
		ok         bool
	}{
		{"markdown", "<!-- " + text + " -->", true},
		{"hash", "# " + text + "\n", true},
		{"slashes and CRLF", "// " + text + "\r\n", true},
		{"without spaces", "#" + text, true},
		{"unpadded", "# " + unpadded, true},
		{"provenance", "# " + text + "|github@someone", true},
		{"bare", text, false},
		{"comment not closed", "<!-- " + text, false},
		{"text after it", "# " + text + " and more", false},
		{"text before it", "# see " + text, false},
		{"provenance that says more", "# " + text + "|coding:utf_7@x", false},
		{"half a provenance", "# " + text + "|github", false},
		{"no such day", "# " + strings.Replace(text, "2026-03-29", "2026-02-30", 1), false},
		{"upper case hash", "# " + strings.Replace(text, "5b8f", "5B8F", 1), false},
		{"short hash", "# " + strings.Replace(text, "5b8f", "", 1), false},
		{"short fingerprint", "# " + strings.TrimSuffix(text, "0"), false},
		{"empty", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sig, ok := sign.Parse(tt.line)
			if ok != tt.ok {
				t.Fatalf("ok = %v, want %v", ok, tt.ok)
			}
			if ok && sig.Fingerprint != opensslFingerprint {
				t.Errorf("fingerprint %q", sig.Fingerprint)
			}
			if wants := strings.Contains(tt.line, "|github@someone"); ok && wants != (sig.Provenance == "github@someone") {
				t.Errorf("provenance %q", sig.Provenance)
			}
		})
	}
}

func TestSplitNeedsTheLanguagesComment(t *testing.T) {
	t.Parallel()
	if sig, rest := sign.Split([]byte(foreignSigned), ".py"); sig != nil || string(rest) != foreignSigned {
		t.Error("a Markdown comment was taken for a signature of a Python file")
	}
	second := "text\n" + foreignSigned
	if sig, _ := sign.Split([]byte(second), ".md"); sig != nil {
		t.Error("a signature on the second line counts only after a shebang")
	}
}

var extensions = []string{".md", ".py", ".yaml", ".yml", ".sh", ".toml", ".js", ".mjs", ".cjs", ".ts"}

// sources draws file contents in which shebangs, marks, line breaks and
// signatures are likely.
func sources() *rapid.Generator[[]byte] {
	piece := rapid.SampledFrom([]string{
		"#!/bin/sh", "\xef\xbb\xbf", "\n", "\r\n", "# x", "// x", "\x00", "\xff", "word",
		foreignSigned, strings.Replace(foreignSigned, "<!--", "#", 1),
	})
	return rapid.Custom(func(t *rapid.T) []byte {
		return []byte(strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "pieces"), ""))
	})
}

func TestAttachProperties(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	rapid.Check(t, func(t *rapid.T) {
		src := sources().Draw(t, "src")
		ext := rapid.SampledFrom(extensions).Draw(t, "ext")
		signed := attach(src, ext, key, noon)
		if err := check(signed, ext, key); err != nil {
			t.Fatalf("%q signed as %q does not verify: %v", src, signed, err)
		}
		if again := attach(signed, ext, key, noon); !bytes.Equal(again, signed) {
			t.Fatalf("signing twice gives %q after %q", again, signed)
		}
		_, before := sign.Split(src, ext)
		_, after := sign.Split(signed, ext)
		if trimmed := bytes.TrimSuffix(after, []byte("\n")); !bytes.Equal(before, after) && !bytes.Equal(before, trimmed) {
			t.Fatalf("signing changed %q to %q", before, after)
		}
	})
}

func TestEveryByteIsCovered(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "body")
		signed := attach(append([]byte("x"), body...), ".md", key, noon)
		line := bytes.IndexByte(signed, '\n') + 1
		at := rapid.IntRange(line, len(signed)-1).Draw(t, "at")
		flip := rapid.Byte().Filter(func(b byte) bool { return b != 0 }).Draw(t, "flip")
		signed[at] ^= flip
		if err := check(signed, ".md", key); !errors.Is(err, sign.ErrBadSignature) {
			t.Fatalf("byte %d changed: error %v, want ErrBadSignature", at, err)
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte(foreignSigned), ".md")
	f.Add([]byte("#!/bin/sh\n# rye:signed:x\n"), ".sh")
	f.Add([]byte("\xef\xbb\xbf// x"), ".ts")
	key := testKey(f)
	f.Fuzz(func(t *testing.T, src []byte, ext string) {
		sig, rest := sign.Split(src, ext)
		if sig == nil && !bytes.Equal(rest, src) {
			t.Error("an unsigned file was changed")
		}
		if sig != nil {
			if again, ok := sign.Parse("# " + sig.String()); !ok || again != *sig {
				t.Errorf("%q reads back as %+v", sig, again)
			}
		}
		if err := check(attach(src, ext, key, noon), ext, key); err != nil {
			t.Error(err)
		}
	})
}
