//go:build linux || darwin

package process

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
)

// procArgsOf is what macOS tells of a process.
func procArgsOf(count int, rest string) []byte {
	return append(binary.NativeEndian.AppendUint32(nil, uint32(count)), rest...)
}

func TestParseProcArgs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		data          []byte
		args, environ string // joined by |
	}{
		"usual":        {procArgsOf(2, "/bin/x\x00\x00\x00\x00x\x00-a\x00A=1\x00B=\x00\x00apple=1\x00"), "x|-a", "A=1|B="},
		"hidden":       {procArgsOf(1, "/bin/sh\x00\x00sh\x00"), "sh", ""},
		"empty at end": {procArgsOf(3, "/bin/x\x00x\x00\x00\x00"), "x||", ""},
		"cut":          {procArgsOf(1, "/bin/x\x00x\x00A=1\x00B="), "x", "A=1"},
	} {
		args, environ, err := parseProcArgs(test.data)
		if err != nil || strings.Join(args, "|") != test.args || strings.Join(environ, "|") != test.environ {
			t.Errorf("%s: %q, %q, %v", name, args, environ, err)
		}
	}
	for _, data := range [][]byte{nil, {1, 0, 0}, procArgsOf(1, "/bin/x"), procArgsOf(2, "/bin/x\x00x\x00"), procArgsOf(1<<31-1, "/bin/x\x00x\x00")} {
		if args, _, err := parseProcArgs(data); !errors.Is(err, errProcArgs) {
			t.Errorf("%q: %q, %v", data, args, err)
		}
	}
}

func FuzzParseProcArgs(f *testing.F) {
	f.Add(procArgsOf(2, "/bin/x\x00\x00x\x00-a\x00A=1\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		args, environ, err := parseProcArgs(data)
		if err != nil && !errors.Is(err, errProcArgs) {
			t.Error(err)
		}
		if slices.ContainsFunc(slices.Concat(args, environ), func(s string) bool { return strings.Contains(s, "\x00") }) {
			t.Errorf("%q, %q", args, environ)
		}
	})
}
