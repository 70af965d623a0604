package process

import (
	"fmt"
	"os"
	"strings"
)

// ToolsOf are the processes that tools of the threads of a project have started, by
// thread. What cleared its environment is not found, and nothing of other users is.
func ToolsOf(project string) (map[string][]Tool, error) {
	all, err := pids()
	if err != nil {
		return nil, fmt.Errorf("list the processes of %s: %w", project, err)
	}
	found := map[string][]Tool{}
	for _, pid := range all {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue // another user's, or it has ended
		}
		thread, here := "", false
		for entry := range strings.SplitSeq(string(content), "\x00") {
			if id, ok := strings.CutPrefix(entry, ParentVariable+"="); ok {
				thread = id
			}
			here = here || entry == ParentProjectVariable+"="+project
		}
		if !here || thread == "" || Gone(pid) {
			continue
		}
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil {
			continue
		}
		found[thread] = append(found[thread], Tool{pid, strings.TrimSpace(string(name))})
	}
	return found, nil
}
