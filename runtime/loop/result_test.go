package loop

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/builtin/shell"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// gives is a tool whose results come one after the other.
func gives(name string, results ...any) tool.Tool {
	var calls int
	return tool.New(tool.Definition{ID: "test/" + name, Description: name}, func(context.Context, tool.Env, struct{}) (any, error) {
		result := results[min(calls, len(results)-1)]
		calls++
		if err, failed := result.(error); failed {
			return nil, err
		}
		return result, nil
	})
}

// artifactIn is the reference that a shortened result names.
func artifactIn(t *testing.T, text string) string {
	t.Helper()
	m := regexp.MustCompile(`artifact ([0-9a-f]{16}): read it with rye_read_artifact`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no artifact in %q", text)
	}
	return m[1]
}

// artifacts are the kept contents by reference.
func (h *house) artifacts(id thread.ID) map[string]string {
	h.t.Helper()
	kept := map[string]string{}
	files, err := filepath.Glob(filepath.Join(h.folder(id).Artifacts(), "*"))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			h.t.Fatal(err)
		}
		kept[filepath.Base(f)[:16]] = string(data)
	}
	return kept
}

func TestLargeResults(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	long := strings.Repeat("é<line>\n", 10_000)
	object := map[string]any{"name": "x", "rows": slices.Repeat([]any{map[string]any{"id": 7}}, 5000), "text": long}
	for name, c := range map[string]struct {
		result any
		whole  string
		says   []string
		failed bool
	}{
		"text":  {result: long, whole: long, says: []string{"é<line>\n… [", "lines "}},
		"JSON":  {result: object, whole: encode(object), says: []string{`{"name":"x","rows":[{"id":7}`, "of 5000 elements left out", `"_shortened":"`}},
		"error": {result: tool.Faultf(tool.CodeToolFailed, "%s", long), failed: true, says: []string{`"code":"tool_failed"`, `"success":false`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.tools.more = []tool.Tool{gives("long", c.result)}
			h.script(once("{name: test_long}"))
			rec := h.run(job{})
			got := h.results(rec.ThreadID)[0]
			if n := utf8.RuneCountInString(got.Text); n > 2400 || n < 1500 || got.IsError != c.failed {
				t.Errorf("%d characters, failed %v: %s", n, got.IsError, got.Text)
			}
			for _, part := range c.says {
				if !strings.Contains(got.Text, part) {
					t.Errorf("%q is not in %s", part, got.Text)
				}
			}
			kept := h.artifacts(rec.ThreadID)
			whole := kept[artifactIn(t, got.Text)]
			if len(kept) != 1 || c.whole != "" && whole != c.whole || !strings.Contains(whole, "line>") {
				t.Errorf("%d artifacts, %d of %d bytes", len(kept), len(whole), len(c.whole))
			}
			if !contains(h.asked(), got.Text) {
				t.Error("the model was given something else")
			}
		})
	}
}

// With more than three quarters of the context in use, results get shorter; those
// of tools that page by themselves do not.
func TestFullContext(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		window, most, least int
		paged               bool
	}{
		"empty": {window: 200_000, most: 2400, least: 1500},
		"full":  {window: 10_000, most: 1200, least: 700},
		"paged": {window: 10_000, most: 24_000, least: 20_000, paged: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.provider = strings.Replace(plainProvider, "small: {context_window: 200000", fmt.Sprintf("small: {context_window: %d", c.window), 1)
			h.tools.more = []tool.Tool{tool.New(tool.Definition{ID: "test/long", Description: "long", Paged: c.paged},
				func(context.Context, tool.Env, struct{}) (any, error) { return strings.Repeat("x", 20_000), nil })}
			h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_long}], usage: {input_tokens: 7500, output_tokens: 10}}\n  - {text: done}\n")
			rec := h.run(job{})
			if n := utf8.RuneCountInString(h.results(rec.ThreadID)[0].Text); n > c.most || n < c.least {
				t.Errorf("%d characters, want %d to %d", n, c.least, c.most)
			}
		})
	}
}

func TestSameResultTwice(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	long, other := strings.Repeat("first ", 200), strings.Repeat("other ", 200)
	h.tools.more = []tool.Tool{gives("file", long, long, other, long), gives("short", "ok"), gives("broken", errors.New(long))}
	h.script(`
turns:
  - {match: {turn: 1}, tool_calls: [{name: test_file}, {name: test_short}, {name: test_broken}]}
  - {match: {turn: 2}, tool_calls: [{name: test_file}, {name: test_short}, {name: test_broken}]}
  - {match: {turn: 3}, tool_calls: [{name: test_file}]}
  - {match: {turn: 4}, tool_calls: [{name: test_file}]}
  - {text: done}
`)
	h.settings.ToolConcurrency = 1
	rec := h.run(job{})
	var files, shorts, broken []string
	for _, r := range h.results(rec.ThreadID) {
		switch r.Tool {
		case "test_file":
			files = append(files, r.Text)
		case "test_short":
			shorts = append(shorts, r.Text)
		default:
			broken = append(broken, r.Text)
			if !r.IsError {
				t.Errorf("no error any more: %q", r.Text)
			}
		}
	}
	const referred = "the same as the result of your call test_file {} in turn 1 ("
	if len(files) != 4 || files[0] != long || !strings.Contains(files[1], referred) || files[2] != other || !strings.Contains(files[3], referred) {
		t.Errorf("%q", files)
	}
	if !slices.Equal(shorts, []string{"ok", "ok"}) {
		t.Errorf("%q", shorts)
	}
	if !strings.Contains(broken[0], long) || !strings.Contains(broken[1], "your call test_broken") {
		t.Errorf("%q", broken)
	}
}

// The rest of a result is read with read_artifact, without any capability for it.
func TestFetchTheRest(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "line %d of many\n", i+1)
	}
	h.tools.more = []tool.Tool{gives("long", map[string]any{"stdout": text.String()})}
	h.script(`
turns:
  - {match: {turn: 1, tool: rye_read_artifact}, tool_calls: [{name: test_long}]}
  - match: {turn: 2}
    tool_calls:
      - {name: rye_read_artifact, input: {ref: '{{ last "artifact ([0-9a-f]+)" }}', path: stdout, offset: 1500, limit: 2}}
      - {name: rye_read_artifact, input: {ref: '{{ last "artifact ([0-9a-f]+)" }}', path: stdout, pattern: "line 2.99 "}}
      - {name: rye_read_artifact, input: {ref: '{{ last "artifact ([0-9a-f]+)" }}', path: stdout}}
      - {name: rye_read_artifact, input: {ref: "0123456789abcdef"}}
  - {text: done}
`)
	rec := h.run(job{})
	type page struct {
		Content    string
		TotalLines int `json:"total_lines"`
		NextOffset int `json:"next_offset"`
		Code       string
	}
	var pages []page
	messages, err := h.messages(rec.ThreadID)
	if err != nil || len(messages) < 5 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	for _, b := range messages[4].Blocks {
		var p page
		if err := json.Unmarshal([]byte(b.Text), &p); err != nil {
			t.Fatalf("%v: %s", err, b.Text)
		}
		pages = append(pages, p)
	}
	want := page{Content: "line 1500 of many\nline 1501 of many\n", TotalLines: 3000, NextOffset: 1502}
	if pages[0] != want {
		t.Errorf("lines: %+v", pages[0])
	}
	if got := strings.Count(pages[1].Content, "\n"); got != 10 || !strings.HasPrefix(pages[1].Content, "2099:line 2099 of many\n2199:") {
		t.Errorf("matches: %+v", pages[1])
	}
	if p := pages[2]; len(p.Content) < 15_000 || p.NextOffset < 900 || !strings.HasPrefix(text.String(), p.Content) {
		t.Errorf("page of %d bytes, next %d", len(p.Content), p.NextOffset)
	}
	if pages[3].Code != "not_found" {
		t.Errorf("of nobody: %+v", pages[3])
	}
}

func TestNothingToFetch(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.script(doneScript)
	h.run(job{capabilities: []string{}})
	if tools := h.server.Requests()[0].Tools; slices.Contains(tools, "rye_read_artifact") {
		t.Errorf("offered without any tool whose result could be long: %v", tools)
	}
}

// A command's binary output is described, and kept as it was.
func TestBinaryOutput(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.tools.more = []tool.Tool{shell.New(nil)}
	h.script(once(`{name: rye_bash, input: {command: "printf 'PK\\003\\004\\000\\000\\377\\376'; echo fine >&2"}}, ` +
		`{name: rye_bash, input: {command: "yes | head -c 60000"}}`))
	rec := h.run(job{capabilities: []string{"rye.execute.tool.rye.bash"}})
	var all []string
	for _, r := range h.results(rec.ThreadID) {
		all = append(all, r.Text)
	}
	kept := h.artifacts(rec.ThreadID)
	binary := slices.IndexFunc(all, func(s string) bool { return strings.Contains(s, "fine") })
	if binary < 0 || !strings.Contains(all[binary], `"stdout":"[binary, no text: 8 bytes, application/zip]"`) ||
		!strings.Contains(all[binary], "[stdout: 8 bytes, application/zip; not text, kept as artifact ") {
		t.Fatalf("%q", all)
	}
	long := all[1-binary]
	ref := regexp.MustCompile(`\[stdout: 60000 bytes, text/plain; charset=utf-8; the whole is artifact ([0-9a-f]+)`).FindStringSubmatch(long)
	if ref == nil || kept[ref[1]] != strings.Repeat("y\n", 30_000) || utf8.RuneCountInString(long) > 2400 {
		t.Errorf("%q", long)
	}
	found := false
	for _, content := range kept {
		found = found || content == "PK\x03\x04\x00\x00\xff\xfe"
	}
	if !found {
		t.Error("the binary output was not kept")
	}
}

// Bytes that a tool returns as they are go the same way.
func TestRawBytes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	shot := drawn(t, 11)
	h.tools.more = []tool.Tool{gives("bytes", "\x00\x01", shot)}
	h.script("turns:\n  - {match: {turn: 1}, tool_calls: [{name: test_bytes}]}\n  - {match: {turn: 2}, tool_calls: [{name: test_bytes}]}\n  - {text: done}\n")
	rec := h.run(job{})
	got := h.results(rec.ThreadID)
	if !strings.HasPrefix(got[0].Text, "[binary, no text: 2 bytes, application/octet-stream]\n[the result: 2 bytes, ") || len(got[0].Images) != 0 {
		t.Errorf("%+v", got[0])
	}
	if !strings.HasPrefix(got[1].Text, "[binary, no text: ") || len(got[1].Images) != 1 {
		t.Errorf("%+v", got[1])
	}
	kept := slices.Collect(maps.Values(h.artifacts(rec.ThreadID)))
	slices.Sort(kept)
	if !slices.Equal(kept, []string{"\x00\x01", string(shot)}) {
		t.Errorf("kept %q", kept)
	}
}

// drawn is a small image that no other test has.
func drawn(t testing.TB, width int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 3))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// seenResult is a result with attachments.
type seenResult struct {
	OK          bool `json:"ok"`
	attachments []tool.Attachment
}

func (s seenResult) Attachments() []tool.Attachment { return s.attachments }

func TestImages(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	shot := drawn(t, 17)
	for name, c := range map[string]struct {
		api, extra, use string
		seen            bool
	}{
		"anthropic":      {api: "anthropic", seen: true},
		"openai":         {api: "openai", seen: true},
		"calls in text":  {api: "anthropic", use: "tool_use: text\n", seen: true},
		"without vision": {api: "anthropic", use: "vision: false\n"},
		"model is blind": {api: "openai", extra: ", vision: false"},
		"model can see":  {api: "openai", use: "vision: false\n", extra: ", vision: true", seen: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			h.tools.more = []tool.Tool{gives("look", seenResult{true, []tool.Attachment{{Name: "a.png", MediaType: "image/png", Data: shot}}})}
			call := "tool_calls: [{name: test_look}]"
			if strings.Contains(c.use, "text") {
				call = "text: \"```json\\n{\\\"tool\\\": \\\"test_look\\\"}\\n```\""
			}
			h.script("turns:\n  - {match: {turn: 1}, " + call + "}\n  - {text: done}\n")
			base := h.server.BaseURL()
			if c.api == "openai" {
				base += "/v1"
			}
			models := strings.Replace(plainProvider, "output: 2, cache_read: 0.1, cache_write: 1.25", "output: 2"+c.extra, 1)
			h.write(".ai/config/agent/providers/fake.yaml", "api: "+c.api+"\nbase_url: "+base+"\n"+c.use+models)
			rec := h.run(job{})
			if rec.Status != thread.Completed {
				t.Fatalf("%+v", rec.Outcome)
			}
			requests := h.server.Requests()
			sent := string(requests[len(requests)-1].Body)
			if has := strings.Contains(sent, base64.StdEncoding.EncodeToString(shot)); has != c.seen {
				t.Errorf("image sent: %v\n%s", has, sent)
			}
			last := requests[len(requests)-1].Last
			note := "you cannot see images]"
			if c.seen {
				note = fmt.Sprintf("[image/png of %d bytes]", len(shot))
			}
			if !strings.Contains(last, note) || !strings.Contains(last, fmt.Sprintf("[a.png: %d bytes, image/png; ", len(shot))) {
				t.Errorf("the model was told %q", last)
			}
			checkImageOnRecord(t, h, rec.ThreadID, shot, c.seen)
		})
	}
}

// checkImageOnRecord: the transcript names the image and does not hold it; it is
// rebuilt from the artifact, and without it the model is told so.
func checkImageOnRecord(t *testing.T, h *house, id thread.ID, shot []byte, seen bool) {
	t.Helper()
	path := h.folder(id).Transcript()
	raw, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(raw), base64.StdEncoding.EncodeToString(shot)[:40]) {
		t.Errorf("the transcript holds the image, %v", err)
	}
	rebuilt := func() llm.Block {
		messages, err := h.messages(id)
		if err != nil {
			t.Fatal(err)
		}
		return messages[2].Blocks[0]
	}
	b := rebuilt()
	if !seen {
		if len(b.Images) != 0 || len(h.artifacts(id)) != 0 {
			t.Errorf("kept for nobody: %+v", b.Images)
		}
		return
	}
	if len(b.Images) != 1 || !bytes.Equal(b.Images[0].Data, shot) || b.Images[0].MediaType != "image/png" {
		t.Fatalf("rebuilt %+v", b.Images)
	}
	file := filepath.Join(h.folder(id).Artifacts(), b.Images[0].Ref+".png")
	if err := os.WriteFile(file, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b := rebuilt(); len(b.Images) != 0 || !strings.Contains(b.Text, "not there any more") {
		t.Errorf("rebuilt without it: %+v", b)
	}
}

// A conversation holds no more images than providers take in one request.
func TestTooManyImages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var many []tool.Attachment
	for i := range maxImages + 2 {
		many = append(many, tool.Attachment{Name: "shot", MediaType: "image/png", Data: drawn(t, i+1)})
	}
	h.tools.more = []tool.Tool{gives("look", seenResult{true, many})}
	h.script(once("{name: test_look}"))
	rec := h.run(job{})
	got := h.results(rec.ThreadID)[0]
	if len(got.Images) != maxImages || strings.Count(got.Text, "not shown, because") != 2 || utf8.RuneCountInString(got.Text) > 2400 {
		t.Errorf("%d images: %s", len(got.Images), got.Text)
	}
	var g gallery
	if !g.admit(maxImageBytes) || g.admit(1) {
		t.Error("the bytes are not bounded")
	}
}

// When a model that cannot see continues, it is told about the images instead.
func TestFallBackToBlindModel(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	shot := drawn(t, 31)
	h.tools.more = []tool.Tool{gives("look", seenResult{true, []tool.Attachment{{Name: "a.png", MediaType: "image/png", Data: shot}}})}
	h.provider = strings.Replace(plainProvider, "second: {", "second: {vision: false, ", 1)
	h.script(`
turns:
  - {match: {turn: 1}, tool_calls: [{name: test_look}]}
  - {match: {model: small}, error: {status: 400, type: invalid_request_error, message: no}}
  - {text: done}
`)
	rec := h.run(job{fallback: "fake/second"})
	requests := h.server.Requests()
	last := requests[len(requests)-1]
	if rec.Status != thread.Completed || last.Model != "second" || strings.Contains(string(last.Body), base64.StdEncoding.EncodeToString(shot)) ||
		!strings.Contains(last.Last, fmt.Sprintf("[image/png of %d bytes; you cannot see images]", len(shot))) {
		t.Errorf("%s, %s was told %q", rec.Status, last.Model, last.Last)
	}
}

// Images count in the estimate of what a call costs and the context holds.
func TestImagesCount(t *testing.T) {
	t.Parallel()
	with := llm.Message{Blocks: []llm.Block{{Type: llm.ToolResultBlock, Text: "x", Images: make([]llm.Image, 2)}}}
	without := llm.Message{Blocks: []llm.Block{{Type: llm.ToolResultBlock, Text: "x"}}}
	var a, b conversation
	a.add(with)
	b.add(without)
	const least = 2 * 6400
	if a.newBytes-b.newBytes < least || a.newChars-b.newChars < least {
		t.Errorf("two images count %d bytes, %d characters", a.newBytes-b.newBytes, a.newChars-b.newChars)
	}
}

// A disk that takes no artifact costs the model the rest, not the thread.
func TestNothingIsKept(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.tools.more = []tool.Tool{gives("long", strings.Repeat("x", 5000), drawn(t, 5), "\x00")}
	h.script("turns:\n  - {match: {last: done}, text: end}\n  - {match: {turn: 4}, text: end}\n  - {tool_calls: [{name: test_long}]}\n")
	id := h.register(job{})
	if err := os.WriteFile(h.folder(id).Artifacts(), nil, 0o600); err != nil { // where the folder would be
		t.Fatal(err)
	}
	rec := h.end(t.Context(), id)
	var texts []string
	for _, r := range h.results(id) {
		texts = append(texts, r.Text)
		if len(r.Images) != 0 {
			t.Errorf("an image that nothing can rebuild: %+v", r.Images)
		}
	}
	if rec.Status != thread.Completed || len(texts) != 3 || strings.Count(strings.Join(texts, ""), "could not be kept") != 3 {
		t.Errorf("%s, %q", rec.Status, texts)
	}
}

// TestRepeatIsOnRecord: a result that only refers to an earlier one says which, in the
// conversation and in the transcript, whatever ids the provider gives.
func TestRepeatIsOnRecord(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.tools.big = strings.Repeat("content ", 100)
	h.script("turns:\n  - {times: 2, tool_calls: [{name: test_big}]}\n  - text: Done.\n")
	rec := h.run(job{})
	got := h.results(rec.ThreadID)
	if len(got) != 2 || got[0].Sum == "" || got[0].SameAs != "" || got[1].Sum != "" || got[1].SameAs != got[0].Sum ||
		!strings.Contains(got[1].Text, "which is not repeated") {
		t.Errorf("%+v", got)
	}
	if said, err := h.messages(rec.ThreadID); err != nil || said[4].Blocks[0].SameAs() != got[0].Sum || said[2].Blocks[0].Sum() != got[0].Sum {
		t.Errorf("%+v, %v", said, err)
	}
}

// fails is a result that tells of a failure, as that of a thread which was waited for.
type fails struct {
	Success bool `json:"success"`
}

func (f fails) Failed() bool { return !f.Success }

// A thread that ends without success is a failed call for the thread that has waited for it.
func TestFailedChildIsAFailedCall(t *testing.T) {
	t.Parallel()
	for _, success := range []bool{true, false} {
		h := newHouse(t)
		h.script("turns:\n  - match: {turn: 1}\n    tool_calls: [{name: rye_execute, input: {item_type: directive, item_id: test/task}}]\n  - text: done\n")
		h.threads.child = func(_ context.Context, c action.Caller, r action.StartRequest) (any, error) {
			c.Started("test/child-1", r.Directive)
			return fails{success}, nil
		}
		rec := h.run(job{capabilities: []string{"rye.execute.directive.*"}})
		got := h.results(rec.ThreadID)
		if len(got) != 1 || got[0].IsError == success || got[0].Text != fmt.Sprintf(`{"success":%v}`, success) {
			t.Errorf("success %v: %+v", success, got)
		}
	}
}
