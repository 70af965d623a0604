package tool

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/pathname"
)

// Tool is something that can be executed by item id.
type Tool interface {
	Definition() Definition
	// Call runs the tool. Args is a JSON object that has been validated against the
	// schema. A mistake of the model comes back as a *Fault; any other error is a
	// failure of the tool. The result must marshal to JSON; one that is an [Attacher]
	// brings along what JSON has no place for.
	Call(ctx context.Context, env Env, args json.RawMessage) (any, error)
}

// Definition describes a tool to models and to the palette.
type Definition struct {
	ID          string          // item id, for example rye/file-system/read
	Description string          // for a model
	Schema      json.RawMessage // JSON Schema of the parameters: an object, closed
	ReadOnly    bool            // changes nothing
	// Paged says that the tool bounds its results and tells how to go on, so that a
	// thread's model is given them whole up to the length of a page.
	Paged bool
	// Untold are parameters that are taken, and that a model is not told of.
	Untold []string
	// Off reports whether settings switch the tool off, so that no model is offered it;
	// nil: it is on.
	Off func() bool
	// ForHooks says that no model is offered it: hooks call it, and who knows its id.
	ForHooks bool
	// CommandLine is the parameter that is a command line of the shell; empty for
	// none. Values that are put into it are quoted.
	CommandLine string
}

// Link is one element of a chain of items: of a tool and what runs it, or of a
// directive and what it extends.
type Link struct {
	ItemID string     `json:"item_id"`
	Space  item.Space `json:"space"`
	Path   string     `json:"path,omitempty"`
}

// Env is where and for whom a tool runs. It carries no secrets.
type Env struct {
	Project string // absolute path of the project
	// Work is where files are read and written and commands run, for a thread with a
	// workspace; nil: in the project. Items, settings and state stay the project's.
	Work      *Work
	ThreadID  thread.ID // empty outside threads
	TraceID   string    // of the request that all this goes back to; may be empty
	Artifacts Artifacts // of the thread; nil outside threads
	// Keeps says that who calls keeps attachments, though not as artifacts of a thread.
	Keeps bool
	// Mask hides the secrets of the thread; nil when there are none. The result of a
	// tool is masked as a whole anyway. A tool that cuts, sorts, matches or hashes
	// what may hold a secret masks it before: a part of one is not recognised later.
	// Where it is set, arguments may hold secrets, and must not become arguments or
	// environment of a process.
	Mask Masker
	// Purse pays for what a tool buys; nil outside threads, where nobody is charged.
	Purse Purse
	// Room is how long the answer may be that the result stands in, in bytes of JSON; 0 in
	// threads, whose models are given pages whole. See [Env.Page].
	Room int
}

const (
	besidePage = 2_000 // what an answer has beside the page of a tool, at most
	leastPage  = 200
)

// Page is how much JSON the text of a page may take, of a tool that says where the next
// one begins: most, or what the answer has room for. A page that does not fit is cut,
// and where the next one begins is wrong then.
func (e Env) Page(most int) int {
	if e.Room == 0 {
		return most
	}
	return max(leastPage, e.Room-min(besidePage, e.Room*2/3))
}

// Work is the workspace of a thread: a working tree of its own.
type Work struct {
	Root string // stands for the project: the tree, or the folder of the project in it
	Tree string
	Git  string // its git folder, which no tool writes
	Lent string // further objects of it; may be empty
}

// Dir is the folder that the call works in: the project, or what stands for it.
func (e Env) Dir() string {
	if e.Work != nil {
		return e.Work.Root
	}
	return e.Project
}

// Here is a path as the call means it: one of the project is that of the same name in
// what stands for it.
func (e Env) Here(path string) string {
	if e.Work == nil || !filepath.IsAbs(path) {
		return path
	}
	if pathname.Has(e.Work.Root, path) {
		return path
	}
	if rel, is := pathname.Inside(e.Project, path); is {
		return filepath.Join(e.Work.Root, rel)
	}
	return path
}

// Artifacts are the results of a thread that were too long to be shown.
type Artifacts interface {
	// Load returns the one of a reference, or of a whole hash. It is named by the hash
	// of its content, so what has been put in its place is refused. Errors that a model
	// can do something about are *[Fault]s.
	Load(ref string) ([]byte, error)
}

// Masker puts placeholders in the place of secrets.
type Masker interface {
	Mask(text string) string
	// MaskLines leaves every line break where it is.
	MaskLines(text string) string
	// Writer masks what is written through it, in pieces that may end anywhere. It is
	// closed after the last piece, which does not close w.
	Writer(w io.Writer) io.WriteCloser
}

// Masked is a text without the secrets of the thread.
func (e Env) Masked(text string) string {
	if e.Mask == nil {
		return text
	}
	return e.Mask.Mask(text)
}
