// Package handed is what the process of a thread is told first: how it is started, and where
// its thread is kept. It imports next to nothing, so that the process can know it before its
// other packages are initialized.
package handed

import (
	"encoding/json"
	"slices"
	"strings"
)

// Store says where the rows of threads are. It goes to processes through their pipe alone.
type Store struct {
	URL     string `json:"url"` // with the password
	Project string `json:"project"`
	Key     string `json:"key,omitempty"` // file of the key of the fleet
}

// storePrefix tells where threads are kept from variables.
const storePrefix = "store:"

// Entry is the store as an entry of what is handed over.
func (s Store) Entry() (string, error) {
	text, err := json.Marshal(s)
	return storePrefix + string(text), err
}

// StoreOf is the store that an entry tells, unless it tells something else. Of one
// that cannot be read the URL is empty, where nothing is found.
func StoreOf(entry string) (s *Store, is bool) {
	text, is := strings.CutPrefix(entry, storePrefix)
	if !is {
		return nil, false
	}
	s = &Store{}
	if json.Unmarshal([]byte(text), s) != nil {
		s.URL = ""
	}
	return s, true
}

// Args are the arguments of the process of a thread.
func Args(project, id string) []string {
	return []string{"thread", "run", "--pre-registered", "--thread-id", id, "--project", project}
}

// IsThread reports whether a process with these arguments, the program's name
// first, runs a thread of any project.
func IsThread(args []string) bool {
	like := Args("", "")
	return len(args) == len(like)+1 && slices.Equal(args[1:5], like[:4]) && args[6] == like[5]
}
