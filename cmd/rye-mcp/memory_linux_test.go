package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestMemoryOfAnswers: a thread whose model answers in 80 000 small pieces, or with as
// much as is taken of one answer, needs little more memory than one whose model says a
// word, and so does the server that passes the answer on. Its transcript is little
// longer than the answer.
func TestMemoryOfAnswers(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if underRace {
		t.Skip("the race detector needs memory of its own")
	}
	const mib = 1 << 20
	p := newPlace(t, answering)
	vendor := httptest.NewServer(http.HandlerFunc(answerInPieces))
	t.Cleanup(vendor.Close)
	peaks := t.TempDir()
	h := p.serve("ANTHROPIC_BASE_URL="+vendor.URL, memoryVariable+"="+peaks)
	base := p.answerAndPeak(h, peaks, "word", len("word"))
	server := p.peakOf(h.cmd.Process.Pid)
	for _, tt := range []struct {
		directive    string
		answer       int // bytes
		thread, host int // MiB above a thread, and a server, with an answer of a word
	}{
		{"burst", 80_000 * len("word "), 40, 60},
		{"long", longAnswer, 90, 200},
	} {
		if more := (p.answerAndPeak(h, peaks, tt.directive, tt.answer) - base) / mib; more > tt.thread {
			t.Errorf("%s: the thread took %d MiB more than one that says a word, want at most %d", tt.directive, more, tt.thread)
		}
		if more := (p.peakOf(h.cmd.Process.Pid) - server) / mib; more > tt.host {
			t.Errorf("%s: the server took %d MiB more, want at most %d", tt.directive, more, tt.host)
		}
	}
}

// answering is a project whose directives say in what way the model is to answer.
const answering = `
-- .ai/directives/word.md --
` + "```xml" + `
<directive name="word" version="1.0.0"><metadata><model tier="fast" /><limits spend="0.50" /></metadata></directive>
` + "```" + `

Say a word.
-- .ai/directives/burst.md --
` + "```xml" + `
<directive name="burst" version="1.0.0"><metadata><model tier="fast" /><limits spend="0.50" /></metadata></directive>
` + "```" + `

Say 80000 words.
-- .ai/directives/long.md --
` + "```xml" + `
<directive name="long" version="1.0.0"><metadata><model tier="fast" /><limits spend="0.50" /></metadata></directive>
` + "```" + `

Say all.
-- model.yaml --
turns:
  - {text: This one is not asked.}
`

// longAnswer is as long as an answer may be, but for what belongs to its JSON.
const longAnswer = 4<<20 - 8<<10

// answerInPieces answers as the vendor does, as the prompt asks for.
func answerInPieces(w http.ResponseWriter, r *http.Request) {
	prompt, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	piece, pieces := "word", 1
	switch {
	case bytes.Contains(prompt, []byte("Say 80000 words.")):
		piece, pieces = "word ", 80_000
	case bytes.Contains(prompt, []byte("Say all.")):
		piece, pieces = strings.Repeat("All of it. ", 744), longAnswer/(744*11)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	said := func(event, data string) { _, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data) }
	said("message_start", `{"type":"message_start","message":{"type":"message","role":"assistant","model":"claude-haiku-4-5","content":[],"usage":{"input_tokens":100,"output_tokens":1}}}`)
	said("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	text, _ := json.Marshal(piece) // a string
	for range pieces {
		said("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+string(text)+`}}`)
	}
	said("content_block_stop", `{"type":"content_block_stop","index":0}`)
	said("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1000}}`)
	said("message_stop", `{"type":"message_stop"}`)
}

// answerAndPeak has a directive answered in so many bytes, through the server and from
// its transcript, and returns what memory its thread came to.
func (p *place) answerAndPeak(h *host, peaks, directive string, size int) int {
	p.Helper()
	type executed struct {
		ThreadID thread.ID `json:"thread_id"`
		Result   string    `json:"result"`
	}
	ran := must[executed](h, "rye_execute", args{"item_id": directive, "thread": "fork", "max_bytes": 1_000_000})
	if !strings.HasPrefix(ran.Result, "word") && !strings.HasPrefix(ran.Result, "All of it.") {
		p.Fatalf("%s: %.200q", directive, ran.Result)
	}
	for cursor, read := "", 0; ; {
		page := must[view.TranscriptPage](h, "read_transcript", args{"thread_id": ran.ThreadID, "cursor": cursor, "max_bytes": 1_000_000})
		read += len(page.Content)
		if page.AtEnd {
			if read < size*9/10 {
				p.Errorf("%s: %d bytes were read back of %d", directive, read, size)
			}
			break
		}
		cursor = page.NextCursor
	}
	info, err := os.Stat(filepath.Join(p.dir, ".ai", "state", "threads", filepath.FromSlash(string(ran.ThreadID)), "transcript.jsonl"))
	p.noError(err)
	if most := int64(size)*6/5 + 1<<20; info.Size() > most {
		p.Errorf("%s: the transcript of %d bytes has %d, want at most %d", directive, size, info.Size(), most)
	}
	files, err := os.ReadDir(peaks)
	p.noError(err)
	if len(files) != 1 {
		p.Fatalf("%d processes came to the end of a thread, want one", len(files))
	}
	path := filepath.Join(peaks, files[0].Name())
	status, err := os.ReadFile(path)
	p.noError(err)
	p.noError(os.Remove(path))
	return p.peakIn(status)
}

// peakOf is what memory a process has come to, in bytes.
func (p *place) peakOf(pid int) int {
	p.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	p.noError(err)
	return p.peakIn(status)
}

func (p *place) peakIn(status []byte) int {
	p.Helper()
	_, peak, _ := bytes.Cut(status, []byte("VmHWM:"))
	peak, _, _ = bytes.Cut(peak, []byte(" kB"))
	kib, err := strconv.Atoi(string(bytes.TrimSpace(peak)))
	p.noError(err)
	return kib << 10
}
