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

// note is what most tests sign.
var note = sign.Name{Kind: "knowledge", ID: "team/note"}

// attach signs a file as note.
func attach(src []byte, ext string, k *sign.Key, at time.Time) []byte {
	return attachAs(src, ext, note, k, at)
}

func attachAs(src []byte, ext string, as sign.Name, k *sign.Key, at time.Time) []byte {
	signed, err := sign.Attach(src, ext, as, k, at)
	if err != nil {
		panic(err) // only about the name, which the tests choose
	}
	return signed
}

func check(src []byte, ext string, k *sign.Key) error { return sign.Check(src, ext, note, k) }

// older gives a file the line of an older signature, which is for no name.
func older(src []byte, ext string, k *sign.Key) []byte {
	signed := attach(src, ext, k, noon)
	sig, _ := sign.Split(signed, ext)
	line := sign.Signature{Time: sig.Time, Hash: sig.Hash, Sig: k.Sign(sig.Hash), Fingerprint: sig.Fingerprint}
	return bytes.Replace(signed, []byte(sig.String()), []byte(line.String()), 1)
}

// TestTheLine pins the form of the line and what is signed: Ed25519 makes the same
// signature of the same message.
func TestTheLine(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	got := string(attachAs([]byte("# T\n"), ".md", sign.Name{Kind: "directive", ID: "team/größe 1"}, key, noon))
	line, _, _ := strings.Cut(got, "\n")
	sig, ok := sign.Parse(line)
	if !ok || sig.Name != (sign.Name{Kind: "directive", ID: "team/größe 1"}) {
		t.Fatalf("%q reads as %+v", line, sig)
	}
	want := "<!-- rye:signed:v2:2026-11-21T11:00:00Z:" + sig.Hash + ":" + key.Sign("rye2\ndirective\nteam/größe 1\n"+sig.Hash) +
		":c6fcdd042a139020:directive:team/gr%C3%B6%C3%9Fe%201 -->"
	if line != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
}

// TestNames: what cannot be written so that it reads back, and means one thing, is
// not signed.
func TestNames(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	tests := []struct {
		name string
		as   sign.Name
		ok   bool
	}{
		{"directive", sign.Name{Kind: "directive", ID: "a"}, true},
		{"tool", sign.Name{Kind: "tool", ID: "a/b.py"}, true},
		{"settings", sign.Name{Kind: sign.KindSettings, ID: "agent/hooks.yaml"}, true},
		{"key", sign.Name{Kind: sign.KindTrustedKey, ID: "0123456789abcdef"}, true},
		{"thread", sign.Name{Kind: sign.KindCapabilities, ID: "t-1"}, true},
		{"comment end, colon, blank, percent", sign.Name{Kind: "knowledge", ID: "a --> b: %2F|c"}, true},
		{"longest id, all encoded", sign.Name{Kind: "knowledge", ID: strings.Repeat("é", 550)}, true},
		{"too long", sign.Name{Kind: "knowledge", ID: strings.Repeat("a", 1101)}, false},
		{"no id", sign.Name{Kind: "knowledge"}, false},
		{"no kind", sign.Name{ID: "a"}, false},
		{"another kind", sign.Name{Kind: "coding", ID: "utf-7"}, false},
		{"kind in capitals", sign.Name{Kind: "Directive", ID: "a"}, false},
		{"line break in the id", sign.Name{Kind: "knowledge", ID: "a\nb"}, false},
		{"not UTF-8", sign.Name{Kind: "knowledge", ID: "a\xff"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			signed, err := sign.Attach([]byte("x\n"), ".md", tt.as, key, noon)
			if (err == nil) != tt.ok {
				t.Fatalf("error %v, want one: %v", err, !tt.ok)
			}
			if !tt.ok {
				return
			}
			if err := sign.Check(signed, ".md", tt.as, key); err != nil {
				t.Error(err)
			}
			if sig, rest := sign.Split(signed, ".md"); sig == nil || sig.Name != tt.as || string(rest) != "x\n" {
				t.Errorf("%q reads back as %+v", signed, sig)
			}
		})
	}
}

// TestParseNames are lines that somebody wrote by hand.
func TestParseNames(t *testing.T) {
	t.Parallel()
	line, _, _ := strings.Cut(string(attach([]byte("x\n"), ".py", testKey(t), noon)), "\n")
	tests := []struct {
		name, old, with string
		ok              bool
	}{
		{"as it is", "", "", true},
		{"with provenance", "team/note", "team/note|registry@ada", true},
		{"without the mark", "v2:", "", false},
		{"another mark", "v2:", "v3:", false},
		{"two marks", "v2:", "v2:v2:", false},
		{"without the name", ":knowledge:team/note", "", false},
		{"without the id", "team/note", "", false},
		{"unknown kind", "knowledge", "coding", false},
		{"a blank in the id", "team/note", "team/ note", false},
		{"encoded without need", "team/note", "team%2Fnote", false},
		{"lower case encoding", "team/note", "team%c3%a9", false},
		{"half an encoding", "team/note", "team%C", false},
		{"encoded line break", "team/note", "team%0Anote", false},
		{"encoded byte that is no text", "team/note", "team%FF", false},
		{"an encoding for Python", "team/note", "coding:utf-7", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			changed := strings.Replace(line, tt.old, tt.with, 1)
			if sig, ok := sign.Parse(changed); ok != tt.ok {
				t.Errorf("%q: %+v, %v", changed, sig, ok)
			}
		})
	}
}

// TestAttackSignatureMovedBetweenForms: the mark and the name of a signature line are taken away or put in front of an older signature.
// The result is not genuine, because the two forms sign different messages.
func TestAttackSignatureMovedBetweenForms(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	bound := string(attach([]byte("x\n"), ".md", key, noon))
	unbound := string(older([]byte("x\n"), ".md", key))
	downgraded := strings.Replace(strings.Replace(bound, "v2:", "", 1), ":knowledge:team/note", "", 1)
	upgraded := strings.Replace(strings.Replace(unbound, "rye:signed:", "rye:signed:v2:", 1), " -->", ":knowledge:team/note -->", 1)
	for _, content := range []string{downgraded, upgraded} {
		if sig, _ := sign.Split([]byte(content), ".md"); sig == nil {
			t.Errorf("%q is no signature", content)
		}
		if err := check([]byte(content), ".md", key); !errors.Is(err, sign.ErrBadSignature) || !strings.Contains(err.Error(), "was not made") {
			t.Errorf("%q: error %v, want that it is not genuine", content, err)
		}
	}
	if err := check([]byte(unbound), ".md", key); !errors.Is(err, sign.ErrUnbound) {
		t.Errorf("older: error %v, want ErrUnbound", err)
	}
}

// TestAttackSignatureOfAnotherName: a signed file is put in the place of an item of another kind, id, case or extension.
// Its signature does not verify there, whatever the line says.
func TestAttackSignatureOfAnotherName(t *testing.T) {
	t.Parallel()
	key := testKey(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.Custom(func(t *rapid.T) sign.Name {
			return sign.Name{
				Kind: rapid.SampledFrom([]string{"directive", "tool", "knowledge", sign.KindSettings, sign.KindTrustedKey}).Draw(t, "kind"),
				ID:   rapid.SampledFrom([]string{"a", "A", "a/b", "a/b.py", "a/b.sh", "é", "e\u0301"}).Draw(t, "id"),
			}
		})
		as, place := name.Draw(t, "signed as"), name.Draw(t, "used as")
		signed := attachAs([]byte("text\n"), ".md", as, key, noon)
		if err := sign.Check(signed, ".md", place, key); (err == nil) != (as == place) {
			t.Fatalf("signed as %s, used as %s: %v", as, place, err)
		}
		sig, _ := sign.Split(signed, ".md")
		relabelled := *sig
		relabelled.Name = place
		signed = bytes.Replace(signed, []byte(sig.String()), []byte(relabelled.String()), 1)
		if err := sign.Check(signed, ".md", place, key); (err == nil) != (as == place) {
			t.Fatalf("signed as %s, labelled and used as %s: %v", as, place, err)
		}
	})
}
