// Package resolve finds items: for an id it looks in the project, the user and
// the system space, in that order, and the first match wins.
package resolve

import (
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Roots are the three spaces. Project and User are the directories that hold
// the .ai folder; an empty one has no such space. System is the content of the
// embedded .ai folder.
type Roots struct {
	Project string
	User    string
	System  fs.FS
}

// Entry is an item that exists in a space, without its content.
type Entry struct {
	Kind    item.Kind
	ID      string
	Space   item.Space
	Path    string // absolute; "system:" and the path in the binary for the system space
	Ext     string // with the dot
	Size    int64
	ModTime time.Time // zero in the system space
	// Folder is that of another program which has the item, below the folder of the
	// project or the user; empty for an item of .ai.
	Folder string
}

// Found is a resolved item.
type Found struct {
	Entry
	Content []byte
	Hash    string  // SHA-256 of Content, hex; of a skill, of the list of all its files
	Shadows []Entry // the items of lower precedence with the same kind and id
	// Detached is the signature of an item of another program, which stands apart from
	// its file; nil for items of .ai.
	Detached *Detached
	// Recorded says that this is what a recorded thread was told, which a replay reads
	// again. There is no file of it, and nobody has signed it.
	Recorded bool
}

// NotFoundError says that no space has the item.
type NotFoundError struct {
	Kind    item.Kind // empty when any kind was asked for
	ID      string
	Space   item.Space  // empty when all were looked at
	Nearest []string    // ids that look alike, best first
	Others  []item.Kind // of which there is an item of the id Meant
	Meant   string      // ID without what makes a path of it
	Why     string      // of what a thread should have left; empty for items in files
}

func (e *NotFoundError) Error() string {
	kind := string(e.Kind)
	if kind == "" {
		kind = "item"
	}
	if e.Why != "" {
		return fmt.Sprintf("no %s %q: %s", kind, e.ID, e.Why)
	}
	where := "project, user or system"
	if e.Space != "" {
		where = string(e.Space)
	}
	text := fmt.Sprintf("no %s %q in the %s space", kind, e.ID, where)
	for _, other := range e.Others {
		if e.Meant == e.ID {
			text += fmt.Sprintf("; there is a %s of this id", other)
		} else {
			text += fmt.Sprintf("; there is a %s %q", other, e.Meant)
		}
	}
	return text
}

// AmbiguousError says that a bare id names items of several kinds.
type AmbiguousError struct {
	ID    string
	Kinds []item.Kind
}

func (e *AmbiguousError) Error() string {
	names := make([]string, len(e.Kinds))
	for i, k := range e.Kinds {
		names[i] = string(k)
	}
	return fmt.Sprintf("%q is a %s; name the item type", e.ID, strings.Join(names, " and a "))
}
