// Package file is the file-system tools: read, write, edit_lines, glob, grep
// and ls. All of them work inside the project only. Paths are opened through
// [os.Root], so that neither ".." nor a symbolic link leads outside, however
// it changes while a tool runs. They do not touch the files that package protect names.
//
// Lines are shown as "<number>:<line id>|<text>". The id, six hexadecimal
// digits, is what edit_lines addresses: it follows from the text of the line
// (see lineIDs), so edits elsewhere leave it valid, and an id that names no
// line any more is refused rather than guessed. Signature lines are not shown, and
// secrets of the thread stand there as their placeholders: what is cut, matched,
// sorted and hashed is what is shown.
package file

import (
	"time"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Bounds of one result. Clients cut results between 12 000 and 50 000
// characters, so everything stays well below 40 KB of JSON.
const (
	maxResultBytes = 32 << 10 // JSON of the part that grows: lines, paths, matches
	maxPageBytes   = 22_000   // JSON of the lines of a page of a thread, whose model is given it whole
	maxFileBytes   = 16 << 20 // a file that read and edit_lines load whole
	maxLines       = 1 << 20  // in such a file; line ids have 24 bits
)

// space is what the tools of one registry share.
type space struct {
	user   string // the folder that holds the user's .ai, which no tool touches; empty for none
	writer writer
	guard  *guard
}

// Deps is what the tools work with.
type Deps struct {
	User string // the folder that holds the user's .ai; empty for none
	// State is the folder of the project's state, below which it is recorded who wrote
	// what; empty while there is none. Nil: nothing is recorded, and nobody refused.
	State func() string
	Now   func() time.Time
}

// Tools returns the tools of the package. Those that change files take turns, so that
// calls of one process made at once do not undo each other. A thread that writes a file
// which another has changed since it read it is refused.
func Tools(d Deps) []tool.Tool {
	if d.State == nil {
		d.State = func() string { return "" }
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	s := &space{user: d.User, guard: newGuard(d.State, d.Now)}
	return []tool.Tool{
		readTool(s), writeTool(s), editTool(s), globTool(s), grepTool(s), lsTool(s),
	}
}
