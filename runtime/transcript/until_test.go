package transcript

import (
	"os"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/builtin/artifact"
)

// TestMessagesUntil: a conversation up to a turn, or up to a byte, is what it was when
// that was all there was of it.
func TestMessagesUntil(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		f, err := os.CreateTemp(dir, "")
		must(rt, err)
		must(rt, f.Close())
		path := f.Name()
		w := open(rt, path, nil)
		var given []llm.Message
		for range rapid.IntRange(0, 2).Draw(rt, "given") {
			given = append(given, llm.Text(llm.User, rapid.String().Draw(rt, "before")))
		}
		must(rt, w.Seed(ThreadContinued{PreviousThreadID: "test/before-1", Via: thread.ViaFork}, given))
		type state struct {
			bytes    int64
			messages []llm.Message
		}
		var after []state // each turn
		for before := range rapid.IntRange(1, 4).Draw(rt, "turns") {
			turn := before + 1
			for range rapid.IntRange(0, 2).Draw(rt, "said") {
				m := llm.Text(llm.User, rapid.String().Draw(rt, "prompt"))
				must(rt, w.Append(thread.EventCognitionIn, CognitionIn{Role: m.Role, Blocks: m.Blocks}))
			}
			blocks := drawAnswer(rt)
			must(rt, w.Append(thread.EventCognitionOut, CognitionOut{Turn: turn, Blocks: blocks}))
			recordResults(rt, w, turn, blocks)
			must(rt, w.Checkpoint(turn))
			said, err := messages(path)
			must(rt, err)
			info, err := os.Stat(path)
			must(rt, err)
			after = append(after, state{info.Size(), said})
		}
		must(rt, w.Close())
		for i, want := range after {
			for _, until := range []Until{{Turn: i + 1}, {Bytes: want.bytes}, {Turn: i + 1, Bytes: want.bytes}} {
				got, err := MessagesUntil(records.File(path), artifact.Folder(dir), until)
				must(rt, err)
				if !reflect.DeepEqual(got, want.messages) {
					rt.Fatalf("%+v\ngot  %+v\nwant %+v", until, got, want.messages)
				}
			}
		}
	})
}
