// Package item holds the words of the spaces: kinds of item, item ids, and the
// metadata of directives, tools and knowledge as Go types. Reading them from
// bytes is package parse, finding them is package resolve.
package item

import (
	"fmt"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// Kind is a type of item.
type Kind string

// The kinds. Their folders below a space are [Kind.Dir].
const (
	Directive Kind = "directive"
	Tool      Kind = "tool"
	Knowledge Kind = "knowledge"
)

// Kinds lists them in the order a bare id is looked up.
func Kinds() []Kind { return []Kind{Directive, Tool, Knowledge} }

// Space is one of the places items live.
type Space string

// The spaces, in order of precedence.
const (
	Project Space = "project"
	User    Space = "user"
	System  Space = "system"
)

// Spaces lists them, first match wins.
func Spaces() []Space { return []Space{Project, User, System} }

// DirectiveDoc is a parsed directive.
type DirectiveDoc struct {
	Name        string
	Version     string
	Extends     string
	Description string
	Category    string
	Author      string
	Model       ModelChoice
	Limits      LimitSet
	OnLimit     string              // one of [OnLimitActions]; empty: what the settings say
	Retry       *thread.RetryPolicy // nil: a thread that fails is not tried again
	Permissions Permissions
	Hooks       []Hook
	Context     Context
	Inputs      []Input
	Outputs     []Output
	Success     string // prose of <outputs><success>
	Failure     string // prose of <outputs><failure>
	// Background starts its threads with async, unless a call says how long it waits.
	Background bool
	// Workspace is one of thread.WorkspaceTypes; empty: it works where its starter does.
	Workspace string
	// ContinuationDirective is the item id of the prompt for a successor.
	ContinuationDirective string
	// Body is the prompt: the text after the block, or the <process> that stands
	// inside it, with placeholders still in place.
	Body string
	// Title is the first heading before the block, and Prose the text under it.
	Title string
	Prose string
	Line  int // of the element <directive> in the file, from 1
	// Unknown are the names of the block that the format does not know.
	Unknown []UnknownName
	// Syntax is how the body names its inputs.
	Syntax Syntax
	// After stands below the body, as it is.
	After string
	// Folder is that of the files that belong to the directive; empty for none.
	Folder string
}

// Syntax is how a text names what is put into it.
type Syntax string

// The syntaxes.
const (
	SyntaxBraces Syntax = ""       // {input:name}, {env:NAME}: that of directives
	SyntaxDollar Syntax = "dollar" // $ARGUMENTS, $1, !`command`, @file: that of package foreign/claude
	SyntaxNone   Syntax = "none"   // nothing is put in
)

// ModelChoice is the <model> element.
type ModelChoice struct {
	Provider string
	Tier     string
	ID       string
	Fallback string
	Effort   string // how much to think, one of [Efforts]; empty: as the model does by itself
	Inherit  bool   // a child has the model of its parent
}

// Efforts lists the words for how much a model is to think. Vendors have them in
// common, but not every model knows all.
func Efforts() []string { return []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"} }

// LimitSet is a partial set of limits, keyed by canonical name: turns, tokens,
// spend, duration_seconds, spawns, depth. Spend is in dollars.
type LimitSet map[string]float64

// LimitNames lists the canonical names. Each may also be spelled with max_ in
// front.
func LimitNames() []string {
	return []string{"turns", "tokens", "spend", "duration_seconds", "spawns", "depth"}
}

// The ends of a thread that hits a limit.
const (
	OnLimitStop = "stop" // it ends
	OnLimitAsk  = "ask"  // it waits until somebody has decided
)

// OnLimitActions lists them.
func OnLimitActions() []string { return []string{OnLimitStop, OnLimitAsk} }

// Permissions is the <permissions> element.
type Permissions struct {
	Declared bool // the element stands in the file, even when it is empty
	// Capabilities are patterns in full form: rye.execute.tool.rye.file-system.*
	Capabilities []string
	Acknowledged []Acknowledgement
}

// Acknowledgement accepts a risk tier.
type Acknowledgement struct {
	Risk   string
	Reason string
}

// Hook is a hook of a directive as written; package hook gives it meaning.
type Hook struct {
	ID          string
	Event       string
	Position    string
	Wrap        *bool
	Timeout     float64 // seconds; 0: not given
	Required    bool    // the thread does not start without what it gives
	Description string
	Conditions  []Condition
	When        string // the short form's expression
	Actions     []Action
	Line        int
}

// Condition is a <condition path op value/>.
type Condition struct {
	Path  string
	Op    string
	Value any // typed: bool, int64, float64 or string
}

// Action is what a hook does.
type Action struct {
	Primary    string
	ItemType   string
	ItemID     string
	SetExtends string
	Params     map[string]any
}

// Context is the <context> element: knowledge ids by position.
type Context struct {
	System   []string
	Before   []string
	After    []string
	Suppress []string
}

// Input is a declared input of a directive.
type Input struct {
	Name        string
	Type        string // string, integer, number, boolean, array, object
	Required    bool
	Optional    bool // it says of itself that it is not required
	Default     any  // typed like Type; nil when there is none
	Description string
	Enum        []string
	// File: the value is the path of a file, declared as the type [TypeFile].
	File bool
	// Secret: the value is for tools alone. Models and files are given a
	// placeholder in its place. A secret is a string without default and enum.
	Secret bool
}

// Output is a declared output of a directive.
type Output struct {
	Name        string `json:"name"`
	Type        string `json:"type,omitempty"` // as Input; "" accepts anything
	Required    bool   `json:"required"`
	Description string `json:"description,omitempty"`
}

// KnowledgeDoc is a parsed knowledge entry.
type KnowledgeDoc struct {
	Name        string
	Title       string
	Category    string
	Version     string
	Author      string
	Description string
	EntryType   string
	Tags        []string
	References  []string
	Extends     []string
	UsedBy      []string
	CreatedAt   string
	Metadata    map[string]any // every key of the metadata block
	Body        string         // without metadata and signature
}

// ToolDoc is the metadata of a tool file.
type ToolDoc struct {
	Version     string
	ToolType    string
	ExecutorID  string
	Category    string
	Description string
	Schema      map[string]any // of the parameters; nil when there is none, or it is not known
	// Metadata holds what the file declares under the keys of YAML, whatever its
	// language: version, executor_id, config_schema …
	Metadata map[string]any
	// Notes tell which of the metadata is not known without running the tool.
	Notes []Note
}

// Note says what about the metadata of an item its reader should know.
type Note struct {
	Key  string // of Metadata
	Text string
	Line int // in the file, from 1
}

// SchemaNote says why the schema that the tool declares is not known, so that
// its parameters cannot be checked; empty when it declares none, or one that is.
func (d *ToolDoc) SchemaNote() string {
	for _, n := range d.Notes {
		if n.Key == KeySchema {
			return n.String()
		}
	}
	return ""
}

// KeySchema is the key of the schema of a tool.
const KeySchema = "config_schema"

func (n Note) String() string {
	if n.Key == KeySchema {
		return fmt.Sprintf("schema %s (line %d); its parameters are not checked", n.Text, n.Line)
	}
	return fmt.Sprintf("%s %s (line %d)", n.Key, n.Text, n.Line)
}
