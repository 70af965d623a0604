package place

import (
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Fleet is the state of a project whose threads are kept by a server that several
// machines share. Its place has an id that follows from the key and the name of the
// project, so that every machine that has the key vouches for the same. There lie copies,
// and records that were not sent yet. The folder is in the user space, where nobody else
// puts anything, and every checkout of the project on the machine has it.
func Fleet(user string, key *sign.Key, project string) State {
	id := key.MAC("fleet", project)[:2*placeBytes]
	return State{Dir: filepath.Join(user, ".ai", "state", "fleet", id, threadsName), Seal: NewSeal(key, id)}
}
