package action

import (
	"errors"
	"fmt"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/itemfile"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// copied is what came of a destination; empty without one.
type copied struct {
	path, replaced, next string
	sign                 bool // next is to sign it
}

// writingFiles is the capability that lets a thread put an item into its project.
const writingFiles = "rye.execute.tool.rye.file-system.write"

// copyItem copies an item into the space that a request names, byte by byte: a
// signature is for kind and id, and so goes with it.
func (a *Actions) copyItem(c Caller, found *resolve.Found, r FetchRequest) (copied, error) {
	switch {
	case r.Destination == "" && r.Overwrite:
		return copied{}, tool.Faultf(tool.CodeBadArguments, "overwrite goes with destination")
	case r.Destination == "":
		return copied{}, nil
	}
	space := item.Space(r.Destination)
	if err := a.mayCopy(c, found, space); err != nil {
		return copied{}, err
	}
	if item.NamesThread(found.ID) {
		return copied{}, noFile(found)
	}
	if found.Detached != nil {
		return copied{}, tool.Faultf(tool.CodeUnsupported, "%s is a file of another program and is not copied as an item", found.Path).
			WithHint("A directive of the same id in .ai/directives goes before it.")
	}
	folder, err := itemfile.Open(a.dirOf(space), found.Kind)
	if err != nil {
		return copied{}, taken(err)
	}
	defer func() { _ = folder.Close() }() // the file is synced by then
	var replacing time.Time
	if r.Overwrite {
		replacing = a.Now()
	}
	written, err := folder.Put(found.ID, found.Ext, found.Content, replacing)
	if err != nil {
		return copied{}, taken(err)
	}
	done := copied{path: written.Path, replaced: written.Replaced}
	done.next, done.sign = a.afterCopy(found, space, written.Path)
	return done, nil
}

// SourceHint says what to do about an item that is there already.
const SourceHint = "Give source to copy the item of another space."

// OverwriteHint says what to do about an item that exists.
const OverwriteHint = "overwrite: true replaces it and keeps it beside the copy."

// taken says what to do about what stands in the way of an item.
func taken(err error) error {
	e, ok := errors.AsType[*itemfile.TakenError](err)
	if !ok {
		return err
	}
	f := tool.Faultf(tool.CodeUnsupported, "%w", err).With("path", e.Path)
	switch e.Why {
	case itemfile.Exists:
		return f.WithHint("%s", OverwriteHint)
	case itemfile.SameID:
		return f.WithHint("One of the two would hide the other. Remove or rename that file first.")
	default:
		return f
	}
}

// afterCopy says what is missing until a copy can be executed. That of an item which
// nobody vouches for is not to be signed by whoever copied it.
func (a *Actions) afterCopy(found *resolve.Found, space item.Space, path string) (next string, sign bool) {
	source := trust.SubjectOf(found)
	there := source
	there.Space, there.Path = space, path
	if v, err := a.Trust.Verify(there); err == nil && v.Status.Good() {
		return "", false
	}
	if v, err := a.Trust.Verify(source); err != nil || !v.Status.Good() {
		return "The copy is not executed, as the item that was copied is not: a person has to read it first.", false
	}
	return fmt.Sprintf("The copy is not executed before it is signed: rye_sign(item_type=%q, item_id=%q, source=%q).", found.Kind, found.ID, space), true
}

// mayCopy refuses what a caller may not write. A thread stays in its project, and
// needs what writing the file by itself would need.
func (a *Actions) mayCopy(c Caller, found *resolve.Found, space item.Space) error {
	switch {
	case found.Space == space:
		return tool.Faultf(tool.CodeBadArguments, "%s %q comes from the %s space already", found.Kind, found.ID, space).
			WithHint("%s", SourceHint)
	case a.dirOf(space) == "":
		return tool.Faultf(tool.CodeUnsupported, "there is no %s space", space)
	case space == item.User && c.InThread:
		return tool.Faultf(tool.CodeUnsupported, "a thread does not write the user space").WithHint("Copy it into the project.")
	}
	return permit(c, writingFiles)
}
