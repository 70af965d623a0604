package server

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// readLines reads all lines of in.
func readLines(t testing.TB, in io.Reader, limit int) []line {
	t.Helper()
	var all []line
	for r := newLineReader(in, limit); ; {
		l, err := r.next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
}

// checkLines compares what was read with the obvious way to split data.
func checkLines(t testing.TB, data []byte, limit int, got []line) {
	t.Helper()
	want := bytes.Split(data, []byte("\n"))
	if len(want[len(want)-1]) == 0 {
		want = want[:len(want)-1]
	}
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	for i, l := range got {
		if l.tooLong != (len(want[i]) > limit) {
			t.Errorf("line %d of %d bytes: tooLong = %v with limit %d", i, len(want[i]), l.tooLong, limit)
		}
		switch {
		case !l.tooLong && !bytes.Equal(l.data, want[i]):
			t.Errorf("line %d = %q, want %q", i, l.data, want[i])
		case l.tooLong && (!bytes.HasPrefix(want[i], bytes.TrimSuffix(l.data, []byte("\n"))) || len(l.data) > keepLine):
			t.Errorf("start of line %d = %q", i, l.data)
		case l.tooLong && (!bytes.HasSuffix(want[i], bytes.TrimSuffix(l.tail, []byte("\n"))) || len(l.tail) > keepLine):
			t.Errorf("end of line %d = %q", i, l.tail)
		}
	}
}

func TestLineReader(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		lengths := rapid.SliceOfN(rapid.OneOf(
			rapid.IntRange(0, 20),
			rapid.IntRange(keepLine-2, keepLine+2),
			rapid.IntRange(64<<10-2, 64<<10+2), // the reader's buffer
			rapid.IntRange(0, 200<<10),
		), 0, 6).Draw(rt, "lengths")
		var data []byte
		for i, n := range lengths {
			data = append(data, bytes.Repeat([]byte{byte('a' + i)}, n)...)
			data = append(data, '\n')
		}
		if rapid.Bool().Draw(rt, "no last newline") && len(data) > 0 {
			data = data[:len(data)-1]
		}
		limit := rapid.SampledFrom([]int{10, keepLine, 64 << 10, 100 << 10}).Draw(rt, "limit")
		in := io.Reader(bytes.NewReader(data))
		if rapid.Bool().Draw(rt, "half reads") {
			in = iotest.HalfReader(in)
		}
		checkLines(t, data, limit, readLines(t, in, limit))
	})
}

func TestLineReaderPassesErrorsOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, start := range []string{"", "x", strings.Repeat("x", 100)} {
		r := newLineReader(io.MultiReader(strings.NewReader(start), iotest.ErrReader(broken)), 10)
		if _, err := r.next(); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v, want the read error", len(start), err)
		}
	}
}

func TestIDOfLongLine(t *testing.T) {
	t.Parallel()
	pad := strings.Repeat("x", 2*keepLine)
	tests := []struct{ name, line, want string }{
		{"first", `{"id":1,"p":"` + pad + `"}`, `1`},
		{"first after BOM", "\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":"a","p":"` + pad + `"}`, `"a"`},
		{"after an object", `{"params":{"id":5},"id":7,"p":"` + pad + `"}`, `7`},
		{"last", `{"p":"` + pad + `","id":-3}`, `-3`},
		{"last with blanks", `{"p":"` + pad + `" , "id" : "x\"}" } ` + "\r", `"x\"}"`},
		{"inner object is last", `{"p":"` + pad + `","q":{"id":9}}`, ``},
		{"inner object broken off", `{"p":"` + pad + `","q":{"id":9`, ``},
		{"null", `{"id":null,"p":"` + pad + `"}`, ``},
		{"array", `[{"id":1,"p":"` + pad, ``},
		{"in the middle", `{"p":"` + pad + `","id":1,"q":"` + pad + `"}`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			lines := readLines(t, strings.NewReader(tt.line+"\n"), keepLine)
			if len(lines) != 1 || !lines[0].tooLong {
				t.Fatalf("read %+v", lines)
			}
			if got := lines[0].id().String(); got != tt.want {
				t.Errorf("id = %s, want %s", got, tt.want)
			}
		})
	}
}

func FuzzLineReader(f *testing.F) {
	f.Add([]byte("{}\n\n{\"id\":1}"), 3)
	f.Add([]byte("\n"), 0)
	f.Add([]byte(`{"a":"b","id":"c"}`+"\r\n"), 5)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		if limit < 0 || limit > maxLine {
			t.Skip("no such limit")
		}
		lines := readLines(t, bytes.NewReader(data), limit)
		checkLines(t, data, limit, lines)
		for _, l := range lines {
			if l.tooLong {
				_ = l.id() // must not panic
			}
		}
	})
}
