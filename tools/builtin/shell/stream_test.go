package shell

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestStream: what a result has in part only is kept whole where there is a place for it, up to a
// bound that its name tells.
func TestStream(t *testing.T) {
	t.Parallel()
	long, binary := strings.Repeat("0123456789abcdef", 4*halfBytes/16), "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	for name, c := range map[string]struct {
		env      tool.Env
		text     string
		attached string // name of the attachment; empty: none
		kept     int
	}{
		"short":                {tool.Env{Keeps: true}, "short", "", 0},
		"long":                 {tool.Env{Keeps: true}, long, "stdout", len(long)},
		"long, with no place":  {tool.Env{}, long, "", 0},
		"binary":               {tool.Env{Keeps: true}, binary, "stdout", len(binary)},
		"more than is kept":    {tool.Env{Keeps: true}, strings.Repeat("x", maxWhole+3), "the first 10485760 of 10485763 bytes of stdout", maxWhole},
		"binary, with no room": {tool.Env{}, binary, "", 0},
	} {
		s := newStream(c.env)
		for rest := []byte(c.text); len(rest) > 0; {
			n := min(len(rest), 1000)
			if got, err := s.Write(rest[:n]); got != n || err != nil {
				t.Fatalf("%s: %d, %v", name, got, err)
			}
			rest = rest[n:]
		}
		if s.binary() != (c.text == binary) {
			t.Errorf("%s: binary: %t", name, s.binary())
		}
		a, ok := s.attachment("stdout")
		if ok != (c.attached != "") || a.Name != c.attached || len(a.Data) != c.kept || ok && !bytes.Equal(a.Data, []byte(c.text[:c.kept])) {
			t.Errorf("%s: %t, %q, %d bytes", name, ok, a.Name, len(a.Data))
		}
	}
}
