// Package alloctest is for tests of what reading hostile bytes costs in memory: it
// makes them, and measures what is allocated.
package alloctest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// Bytes is how many bytes a call allocates. Tests that measure it do not run beside
// others.
func Bytes(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Size is how large hostile inputs are: as large as they may be in a soak, and in other
// tests so large that they tell a square from a multiple.
func Size(most int) int {
	if longtest.Soak() {
		return most
	}
	return min(most, 256<<10)
}

// NotUnderRace skips a test that measures memory where the race detector's would be counted.
func NotUnderRace(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("the race detector's memory would be counted")
	}
}

// Linear reads each of the inputs and fails where that allocates more than factor times
// its size. Under the race detector the test is skipped, as more is counted there.
func Linear(t *testing.T, factor int, inputs map[string]string, read func(name string, input []byte)) {
	t.Helper()
	NotUnderRace(t)
	for name, input := range inputs {
		used := Bytes(func() { read(name, []byte(input)) })
		if most := uint64(factor) * uint64(max(len(input), 64<<10)); used > most {
			t.Errorf("%s: %d bytes cost %d, %d times as much; want at most %d", name, len(input), used, used/uint64(len(input)), factor)
		}
	}
}

// JSON are values of about that size: deep, wide, long, and broken.
func JSON(size int) map[string]string {
	const deep = 9_000 // decoders refuse more than 10 000
	list := func(of string) string { return "[" + strings.TrimSuffix(Fill(size-2, of+","), ",") + "]" }
	return map[string]string{
		"open brackets": Fill(size, "["), "open objects": Fill(size, `{"a":`),
		"deep lists":   "[" + strings.TrimSuffix(Fill(size-2, strings.Repeat("[", deep)+strings.Repeat("]", deep)+","), ",") + "]",
		"deep objects": strings.Repeat(`{"a":`, deep) + `"` + Fill(size-6*deep-2, "x") + `"` + strings.Repeat("}", deep),
		"numbers":      list("1"), "long number": Fill(size, "1"), "empty texts": list(`""`), "empty objects": list("{}"), "empty lists": list("[]"), "nulls": list("null"),
		"members": "{" + keys(size-2, `"%x":0,`) + `"":0}`, "one member often": "{" + Fill(size-8, `"a":0,`) + `"":0}`,
		"long text": `"` + Fill(size-2, "x") + `"`, "escapes": `"` + Fill(size-2, `\u0041`) + `"`, "surrogates": `"` + Fill(size-2, `\ud83d`) + `"`,
		"long name": `{"` + Fill(size-6, "x") + `":0}`, "blanks": Fill(size-1, " ") + "1", "lines": Fill(size, "\n"),
	}
}

// YAML are documents of about that size.
func YAML(size int) map[string]string {
	return map[string]string{
		"brackets": "a: " + Fill(size-3, "["), "braces": "a: " + Fill(size-3, "{a: "), "lists": Fill(size, "- "), "questions": Fill(size, "? "),
		"anchors": Fill(size, "&a "), "tags": Fill(size, "!!str "), "aliases": "a: &a x\nb: [" + Fill(size-20, "*a,") + "]",
		"merges": "a: &a {x: 1}\n" + Fill(size-20, "<<: *a\n"), "laughs": laughs(), "keys": keys(size, "k%x: 1\n"),
		"flow keys": "a: {" + keys(size-10, "k%x: 1, ") + "}", "flow list": "a: [" + Fill(size-10, "1,") + "]", "items": "a:\n" + Fill(size-3, "- 1\n"),
		"long line": "a: " + Fill(size-3, "x"), "long text": "a: |\n" + Fill(size-10, " x\n"), "escapes": `a: "` + Fill(size-10, `\u0041`) + `"`,
		"comments": Fill(size, "#\n"), "documents": Fill(size, "---\n"), "deeper": deeper(size),
	}
}

// Fill repeats a text as often as it has room, at least once.
func Fill(size int, text string) string { return strings.Repeat(text, max(1, size/len(text))) }

// keys numbers a text as often as it has room.
func keys(size int, format string) string {
	var text strings.Builder
	for i := 0; text.Len() < size-16; i++ {
		fmt.Fprintf(&text, format, i)
	}
	return text.String()
}

// laughs are aliases of aliases, ten to each of nine levels.
func laughs() string {
	var text strings.Builder
	text.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&text, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return text.String()
}

// deeper is a mapping in a mapping in a mapping, each on a line of its own.
func deeper(size int) string {
	var text strings.Builder
	for i := 0; text.Len()+i+3 < size; i++ {
		text.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return text.String()
}
