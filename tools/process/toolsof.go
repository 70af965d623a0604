//go:build linux || darwin

package process

import (
	"fmt"
	"strings"
)

// Tool is a process that a tool of a thread has started.
type Tool struct {
	PID  int
	Name string // as the process calls itself
}

// ToolsOf are the processes that tools of the threads of a project have started, by
// thread. A process that cleared or hides its environment is not found, and none of
// other users is.
func ToolsOf(project string) (map[string][]Tool, error) {
	all, err := pids()
	if err != nil {
		return nil, fmt.Errorf("list the processes of %s: %w", project, err)
	}
	found := map[string][]Tool{}
	for _, pid := range all {
		environ, err := environOf(pid)
		if err != nil {
			continue // another user's, or it has ended
		}
		thread, here := "", false
		for _, entry := range environ {
			if id, ok := strings.CutPrefix(entry, ParentVariable+"="); ok {
				thread = id
			}
			here = here || entry == ParentProjectVariable+"="+project
		}
		if !here || thread == "" || Gone(pid) {
			continue
		}
		name, err := nameOf(pid)
		if err != nil {
			continue
		}
		found[thread] = append(found[thread], Tool{pid, name})
	}
	return found, nil
}

// MarkOf is the thread by whose mark a process is known, see [Mark]; empty when it has
// none, or hides its environment.
func MarkOf(pid int) string {
	environ, err := environOf(pid)
	if err != nil {
		return ""
	}
	for _, entry := range environ {
		if id, ok := strings.CutPrefix(entry, ParentVariable+"="); ok {
			return id
		}
	}
	return ""
}
