package action

import (
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/resolve"
)

// Named lists what a person names on a command line: an item of any space by its
// id; the items of the project and the user space that match a pattern of ids;
// files of those spaces by path, settings files among them, which have no kind.
// Kind may be empty. The error is a *tool.Fault.
func (a *Actions) Named(kind, name string) ([]resolve.Entry, error) {
	if IsPath(name) || strings.ContainsAny(name, patternRunes) {
		entries, err := a.toSign(Caller{}, SignRequest{ItemType: kind, ItemID: name})
		if err != nil {
			return nil, Fault(err)
		}
		return entries, nil
	}
	found, err := a.find(Caller{}, "fetch", kind, name)
	if err != nil {
		return nil, Fault(err)
	}
	return []resolve.Entry{found.Entry}, nil
}
