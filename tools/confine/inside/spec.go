// Package inside makes a new process what a policy of package confine says, and then
// the command. The process is this program again, in namespaces of its own: cmd calls
// [Main] before other packages are initialized, so that it costs little.
package inside

import (
	"encoding/json"
	"os"
)

// Argument is the first argument of such a process; the second is a [Spec] as JSON,
// and the rest is the command: its program and arguments.
const Argument = "confined"

// ListenerFD is the number of the socket to hand a listener over through, where
// Spec.Proxy asks for one.
const ListenerFD = 3

// Failed is the exit code of a process that could not be confined; it has said why on
// its standard error.
const Failed = 126

// Spec is a policy whose paths have been found.
type Spec struct {
	Namespaces bool     `json:"namespaces,omitempty"` // it has users, mounts, and a network, of its own
	User       int      `json:"user,omitempty"`       // that it is in and outside its namespaces; set by Args
	Group      int      `json:"group,omitempty"`
	Writable   []string `json:"writable,omitempty"`
	Pinned     []string `json:"pinned,omitempty"` // folders that stay where they are, outer ones first
	ReadOnly   []string `json:"read_only,omitempty"`
	Hidden     []string `json:"hidden,omitempty"`
	Proxy      bool     `json:"proxy,omitempty"` // a listener on its loopback is handed to who started it
}

// Args are the arguments for a process that becomes the command.
func (s Spec) Args(program string, args []string) ([]string, error) {
	if s.Namespaces {
		s.User, s.Group = os.Getuid(), os.Getgid()
	}
	text, err := json.Marshal(s)
	return append([]string{Argument, string(text), program}, args...), err
}

// Probe are the arguments of a process that is confined and ends.
func (s Spec) Probe() ([]string, error) { return s.Args("", nil) }
