package inside

import (
	"errors"
	"fmt"
	"os"
)

// mapUser makes this process the user in its namespace that it is outside. The process does it
// itself: the one that has started it hides its memory (PR_SET_DUMPABLE(2const)), and as long as
// a child shares that, /proc lets only root write the maps of the child, see proc_pid(5).
func mapUser(user, group int) error {
	for _, file := range []struct{ name, text string }{
		{"setgroups", "deny"}, // else only root may write the map of groups, see user_namespaces(7)
		{"uid_map", fmt.Sprintf("%d %d 1", user, user)},
		{"gid_map", fmt.Sprintf("%d %d 1", group, group)},
	} {
		if err := writeOnce("/proc/self/"+file.name, file.text); err != nil {
			return err
		}
	}
	return nil
}

// writeOnce writes a file that takes what is written in one piece.
func writeOnce(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
