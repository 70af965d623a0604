package item

import "strings"

// ThreadRecords is the folder of the records of threads among knowledge: what they
// said and did, and summaries of it. Searches and counts leave them out.
const ThreadRecords = "agent/threads"

// IsThreadRecord reports whether an item is the record of a thread.
func IsThreadRecord(kind Kind, id string) bool {
	return kind == Knowledge && strings.HasPrefix(id, ThreadRecords+"/")
}
