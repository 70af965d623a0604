package tool

import "github.com/rye-mcp/rye-mcp/runtime/thread"

// Whole is where the whole of a text lies that an answer may have no room for: a
// part of what a thread has left, which read_transcript reads.
type Whole struct {
	ThreadID thread.ID
	Part     string // of [Parts]
	Verbatim bool   // the part is the text itself, so that reading can begin where the answer was cut
}

// Parts of what a thread leaves.
const (
	PartTranscript = "transcript" // what was said and done
	PartResult     = "result"     // the final text, or what a tool run returned
	PartOutputs    = "outputs"    // the declared outputs, as JSON
)

// Keeper is implemented by results whose long texts can be read again. Place is
// where a text stands in the result: the names of its members, and the numbers of
// elements.
type Keeper interface {
	WholeOf(place []string) (Whole, bool)
}

// WholeOf tells where the whole of a text of a result lies, if the result knows.
func WholeOf(result any, place []string) (Whole, bool) {
	if k, ok := result.(Keeper); ok {
		return k.WholeOf(place)
	}
	return Whole{}, false
}
