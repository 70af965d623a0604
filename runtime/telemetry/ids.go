package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/timeline"
)

// Ids follow from what they name, so that processes need to tell each other nothing and
// what is sent again is the same. Place is the id of the project's place: ids of threads
// are those of one project.

// traceID is that of all threads below a root and of those that continue it, in
// hexadecimal.
func traceID(place string, root thread.ID) string {
	return hashed(16, "trace", place, string(root))
}

// threadSpan is the span of a thread.
func threadSpan(place string, id thread.ID) string {
	return hashed(8, "thread", place, string(id))
}

// startSpan is the span of a thread in which it has started another: that one's parent,
// which is known without a look at what the thread did.
func startSpan(place string, id, child thread.ID) string {
	return hashed(8, "start", place, string(id), string(child))
}

// eventSpan is the span that an event of a thread's transcript begins; one of its row has
// no event.
func eventSpan(place string, id thread.ID, kind timeline.Kind, seq int64) string {
	return hashed(8, "event", place, string(id), string(kind), strconv.FormatInt(seq, 10))
}

// hashed is so many bytes of a hash, in hexadecimal. They are not all 0, which names
// nothing.
func hashed(bytes int, words ...string) string {
	h := sha256.New()
	for _, word := range words {
		_, _ = h.Write([]byte(strconv.Itoa(len(word)) + ":" + word)) // a hash takes everything
	}
	sum := h.Sum(nil)[:bytes]
	sum[bytes-1] |= 1
	return hex.EncodeToString(sum)
}
