package finish

import (
	"os"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// TestFollow keeps a rendering up with the transcript of a running thread, unsigned,
// and has it whole and signed, like thread.json, before the row says that it has ended.
func TestFollow(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	rec, err := f.store.Get(t.Context(), f.child)
	f.must(err)
	finisher := &Finisher{Store: f.store, Records: records.Local{Home: f.home()}, KnowledgeDir: f.items, Now: now}
	w, err := finisher.OpenTranscript(f.child, "")
	f.must(err)
	defer func() { _ = w.Close() }()
	f.must(w.Append(thread.EventCognitionIn, transcript.CognitionIn{Role: llm.User, Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: "Do it."}}}))
	stop, err := finisher.Follow(rec, w)
	f.must(err)

	where := Rendering(f.items, rec)
	read := func() string {
		text, err := os.ReadFile(where)
		f.must(err)
		return string(text)
	}
	f.must(w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: "I am "}))
	f.must(w.Delta(1, llm.Delta{Type: llm.TextBlock, Text: "at it."}))
	f.must(w.Append(thread.EventCognitionOut, transcript.CognitionOut{Turn: 1, Blocks: transcript.Blocks{
		{Type: llm.TextBlock, Text: "I am at it."}, {Type: llm.ToolUseBlock, ToolName: "test_echo", Input: []byte(`{}`)},
	}}))
	running := read()
	for _, want := range []string{"status: running", "The thread still runs", "Do it.", "## Turn 1\n\nI am at it.\n\nCall `test_echo`"} {
		if strings.Count(running, want) != 1 {
			t.Errorf("%q does not stand once in\n%s", want, running)
		}
	}
	if strings.Contains(running, "rye:signed:") {
		t.Errorf("it is signed:\n%s", running)
	}
	f.must(w.Append(thread.EventCognitionIn, transcript.CognitionIn{Role: llm.User, Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: "More."}}}))
	if more := read(); !strings.HasPrefix(more, running) || !strings.Contains(more, "More.") {
		t.Errorf("it was not appended to:\n%s", more)
	}

	f.must(stop())
	finisher.Crashpoints = func(at thread.Crashpoint) {
		if at != CrashRegistry {
			return
		}
		if ended := read(); !strings.Contains(ended, "rye:signed:") || !strings.Contains(ended, "status: completed") {
			t.Errorf("waiters wake, and the rendering is\n%s", ended)
		}
		if meta, err := folder.Of(f.dir, f.child).ReadMeta(placetest.Seal(f.key)); err != nil || meta.Status != thread.Completed {
			t.Errorf("waiters wake, and thread.json says %s, %v", meta.Status, err)
		}
	}
	if _, err := finisher.Finish(t.Context(), f.store.Runner(f.child, ""), w, done, doneCost); err != nil {
		t.Error(err)
	}
}

// TestAttackLinkInPlaceOfRendering: Somebody puts a link to a file of the user where the rendering of a thread will lie. The link is replaced and its target stays as it is.
func TestAttackLinkInPlaceOfRendering(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	rec, err := f.store.Get(t.Context(), f.child)
	f.must(err)
	finisher := &Finisher{Store: f.store, Records: records.Local{Home: f.home()}, KnowledgeDir: f.items, Now: now}
	w, err := finisher.OpenTranscript(f.child, "")
	f.must(err)
	defer func() { _ = w.Close() }()
	target, where := f.dir+"/profile", Rendering(f.items, rec)
	f.must(os.WriteFile(target, []byte("mine"), 0o600))
	f.must(os.MkdirAll(where[:strings.LastIndexByte(where, '/')], 0o700))
	f.must(os.Symlink(target, where))
	stop, err := finisher.Follow(rec, w)
	f.must(err)
	f.must(w.Append(thread.EventCognitionIn, transcript.CognitionIn{Role: llm.User, Blocks: transcript.Blocks{{Type: llm.TextBlock, Text: "Do it."}}}))
	f.must(stop())
	if text, err := os.ReadFile(target); err != nil || string(text) != "mine" {
		t.Errorf("the target is %q, %v", text, err)
	}
}
