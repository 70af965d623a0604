package item

import "strings"

// ThreadRecords is the folder of the records of threads among knowledge: what they
// said and did, and summaries of it. Searches and counts leave them out.
const ThreadRecords = "agent/threads"

// The beginnings of the knowledge ids that name what a thread has left without naming
// the thread: behind the first stands the id of a directive, behind the other a request
// key. No file has such an id.
const (
	LatestThread = ThreadRecords + "/@latest/"
	KeyedThread  = ThreadRecords + "/@key/"
)

// IsThreadRecord reports whether an item is the record of a thread.
func IsThreadRecord(kind Kind, id string) bool {
	return kind == Knowledge && strings.HasPrefix(id, ThreadRecords+"/")
}

// NamesThread reports whether a knowledge id stands for what a thread has left, whose
// directive or request key it names.
func NamesThread(id string) bool {
	return strings.HasPrefix(id, LatestThread) || strings.HasPrefix(id, KeyedThread)
}
