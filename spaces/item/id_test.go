package item_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func TestCheckID(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, id, reason string // no reason: the id is good
	}{
		{"one segment", "base", ""},
		{"several segments", "rye/agent/core/base", ""},
		{"dots in names", "my.tool/v1.2/.hidden.", ""},
		{"other letters", "größe/日本", ""},
		{"spaces", "my notes/first draft", ""},
		{"longest", strings.Repeat("a", 200) + "/" + strings.Repeat("b", 200) + "/" + strings.Repeat("c", 110), ""},
		{"empty", "", "is empty"},
		{"absolute", "/etc/passwd", "absolute"},
		{"parent", "../secrets", `contains ".."`},
		{"parent within", "a/../b", `contains ".."`},
		{"parent at the end", "a/..", `contains ".."`},
		{"two dots in a name", "bad..id", `contains ".."`},
		{"here", "a/./b", `segment "."`},
		{"backslash", `a\b`, "backslash"},
		{"NUL", "a\x00b", "control character"},
		{"newline", "a\nb", "control character"},
		{"delete", "a\x7fb", "control character"},
		{"C1 control", "a\u0085b", "control character"},
		{"invalid UTF-8", "a\xffb", "UTF-8"},
		{"empty segment", "a//b", "empty segment"},
		{"trailing slash", "a/b/", "ends with a slash"},
		{"too long", strings.Repeat("ab/", 171), "longer than 512 bytes"},
		{"segment too long", strings.Repeat("a", 201), "segment longer than 200 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := item.CheckID(tt.id)
			if tt.reason == "" {
				if err != nil {
					t.Fatalf("CheckID(%q) = %v, want nil", tt.id, err)
				}
				return
			}
			if !errors.Is(err, item.ErrBadID) || !strings.Contains(err.Error(), tt.reason) {
				t.Fatalf("CheckID(%q) = %v, want ErrBadID with %q", tt.id, err, tt.reason)
			}
		})
	}
}

// An accepted id never leads out of the folder it is put below.
func TestCheckIDStaysInside(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		segments := rapid.SliceOf(rapid.OneOf(
			rapid.SampledFrom([]string{"..", ".", "", "a", `\`, "a b", "..."}), rapid.String())).Draw(t, "segments")
		checkInside(t, strings.Join(segments, "/"))
	})
}

func FuzzCheckID(f *testing.F) {
	for _, id := range []string{"rye/core/base", "../x", "a//b", "/x", "a\x00", "\xff", `a\b`} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) { checkInside(t, id) })
}

func checkInside(t interface{ Fatalf(string, ...any) }, id string) {
	if err := item.CheckID(id); err != nil {
		if !errors.Is(err, item.ErrBadID) {
			t.Fatalf("CheckID(%q) = %v, which is not ErrBadID", id, err)
		}
		return
	}
	for segment := range strings.SplitSeq(id, "/") {
		if segment == "" || segment == "." || segment == ".." || len(segment) > 200 {
			t.Fatalf("CheckID(%q) accepts the segment %q", id, segment)
		}
	}
	if len(id) > 512 || strings.Contains(id, "..") || strings.ContainsAny(id, "\\\x00\n\r") {
		t.Fatalf("CheckID accepts %q", id)
	}
}

func TestParseKind(t *testing.T) {
	t.Parallel()
	for _, k := range item.Kinds() {
		got, err := item.ParseKind(string(k))
		if err != nil || got != k {
			t.Errorf("ParseKind(%q) = %q, %v", k, got, err)
		}
		if k.Dir() == "" || len(k.Extensions()) == 0 {
			t.Errorf("%s has no folder or no extensions", k)
		}
	}
	for _, s := range []string{"", "Directive", "tools", "chunk"} {
		_, err := item.ParseKind(s)
		if err == nil || !strings.Contains(err.Error(), "directive, tool, knowledge") {
			t.Errorf("ParseKind(%q) = %v, want an error that lists the kinds", s, err)
		}
	}
}
