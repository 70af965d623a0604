package termsvg

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// record writes pieces to a terminal of 20 columns and 4 rows, each 100 ms after the last.
func record(pieces ...string) *Recorder {
	now := time.Unix(0, 0)
	r := New(Options{Title: "a <test>", Columns: 20, Rows: 4, Now: func() time.Time { return now }})
	for _, piece := range pieces {
		now = now.Add(100 * time.Millisecond)
		_, _ = r.Write([]byte(piece))
	}
	return r
}

// rows is what the terminal shows in the end.
func (r *Recorder) shows() string {
	var lines []string
	for _, line := range r.screen.lines {
		var b strings.Builder
		for _, c := range line {
			b.WriteRune(c.r)
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func TestScreen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ written, want string }{
		"lines":                 {"one\ntwo\r\nthree\n", "one\ntwo\nthree"},
		"drawn over":            {"one\ntwo\n\x1b[2A\x1b[2KONE\n\x1b[2KTWO\n", "ONE\nTWO"},
		"return":                {"12345\rab", "ab345"},
		"erased to the end":     {"12345\r\x1b[K", ""},
		"tab":                   {"a\tb", "a       b"},
		"too long":              {"12345678901234567890ab", "12345678901234567890\nab"},
		"scrolled":              {"1\n2\n3\n4\n5", "2\n3\n4\n5"},
		"colours":               {"\x1b[32mgreen\x1b[0m \x1b[1;31mred\x1b[m", "green red"},
		"colours by number":     {"\x1b[38;5;9mred\x1b[48;2;1;2;3mx", "redx"},
		"a title of a window":   {"\x1b]0;owned\x07a\x1b]8;;https://evil.example\x1b\\b", "ab"},
		"unknown sequences":     {"a\x1b[?25l\x1b[99;99Hb\x1b(0c", "ab0c"},
		"a sequence in pieces":  {"\x1b[3", ""},
		"control and bidi":      {"a\x07\x08\u202eb", "a\ufffdb"},
		"not UTF-8":             {"a\xff\xfeb", "a\ufffd\ufffdb"},
		"up beyond the top":     {"a\n\x1b[999Ab", "b"},
		"a sequence of 5000":    {"\x1b]" + strings.Repeat("x", 5000) + "\nend", "\nend"},
		"up a negative number":  {"a\n\x1b[-5Ab", "b"},
		"erased below the last": {"a\n\x1b[2K", "a"},
	} {
		if got := record(test.written).shows(); got != test.want {
			t.Errorf("%s: %q shows %q, want %q", name, test.written, got, test.want)
		}
	}
	if got := record("\x1b]"+strings.Repeat("x", 5000), "end").shows(); got != "end" {
		t.Errorf("after a sequence that never ends it shows %q", got)
	}
	if got := record("\x1b[3", "1mre", "d\xe2\x9c", "\x93").shows(); got != "red✓" {
		t.Errorf("in pieces it shows %q", got)
	}
}

// TestSVG: a line that is drawn over is there for its time, the last one until the end.
func TestSVG(t *testing.T) {
	t.Parallel()
	svg := string(record("\x1b[36mworks\x1b[0m\n", "\x1b[1A\x1b[2K\x1b[32mdone\x1b[0m\n").SVG())
	for _, want := range []string{
		`<title id="t">a &lt;test&gt;</title>`,
		`@keyframes k1{0%{visibility:hidden}1.923%{visibility:visible}3.846%{visibility:hidden}}`,
		`@keyframes k2{0%{visibility:hidden}3.846%{visibility:visible}}`,
		`<g id="k1" class="p"><text x="18.0" y="50" textLength="42.0" style="fill:#56d4dd">works</text>`,
		`<g id="k2" class="x"><text x="18.0" y="50" textLength="33.6" style="fill:#56d364">done</text>`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture lacks %s:\n%s", want, svg)
		}
	}
}

// TestAttackRecordedBytes: the text of a thread is recorded into a picture and tries to become markup or a link there. The picture stays well-formed, with our elements and their attributes alone.
func TestAttackRecordedBytes(t *testing.T) {
	t.Parallel()
	checkPicture(t, []byte("</text><script>alert(1)</script><image href='https://evil.example/x.png'/>&#x0;]]>\x00\x1b]8;;javascript:x\x07"))
}

func FuzzSVG(f *testing.F) {
	f.Add([]byte("\x1b[2A\x1b[2K\x1b[31m<b>&\xff\x1b]0;x"))
	f.Fuzz(func(t *testing.T, p []byte) { checkPicture(t, p) })
}

func checkPicture(t *testing.T, written []byte) {
	t.Helper()
	svg := record(string(written)).SVG()
	decode := xml.NewDecoder(bytes.NewReader(svg))
	known := map[string]bool{"svg": true, "title": true, "style": true, "rect": true, "circle": true, "text": true, "g": true}
	for {
		token, err := decode.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v:\n%s", err, svg)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if !known[start.Name.Local] {
			t.Fatalf("an element %s:\n%s", start.Name.Local, svg)
		}
		for _, a := range start.Attr {
			if a.Name.Local == "href" || strings.HasPrefix(a.Name.Local, "on") {
				t.Fatalf("an attribute %s:\n%s", a.Name.Local, svg)
			}
		}
	}
}
