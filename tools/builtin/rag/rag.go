package rag

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Deps is what the tools need.
type Deps struct {
	// Open opens memory for a call; nil: it is off. Nothing may be made, looked for or
	// called while it is.
	Open func(ctx context.Context, env tool.Env) (*Session, error)
	// Clean takes secrets out of a text: those of the thread, and what looks like a key.
	Clean func(env tool.Env, text string) (clean string, taken int)
	Now   func() time.Time
}

// Session is memory as one call sees it.
type Session struct {
	Settings config.Memory
	Index    Index
	// Embed turns texts into vectors. Where that is not possible the error is an
	// [*UnavailableError], or the *tool.Fault of a budget that is used up; Cost says what was
	// spent all the same.
	Embed func(ctx context.Context, texts []string) (Vectors, error)
	// Project, Thread and Chain are of the caller, whatever its parameters say.
	Project, Thread, Chain string
	// Endpoint says where texts are embedded, or why nowhere.
	Endpoint func(ctx context.Context) Endpoint
	// Alone keeps other processes from embedding the index again meanwhile. With busy
	// one is at it.
	Alone func() (release func(), busy bool, err error)
}

// Index keeps rows. Errors that a model can do something about are *tool.Fault.
type Index interface {
	Store(ctx context.Context, r Row) (replaced bool, err error)
	// Find is the row of a key; false when there is none.
	Find(ctx context.Context, namespace, project, key string) (Row, bool, error)
	// Any reports whether a namespace has rows of a project; "*" for all.
	Any(ctx context.Context, namespace, project string) (bool, error)
	Query(ctx context.Context, q Query) (Answer, error)
	Delete(ctx context.Context, namespace, project string, keys []string) (deleted int, err error)
	// Stale are rows of all projects without a vector of a model, from behind a cursor
	// on, in a fixed order.
	Stale(ctx context.Context, namespace, model string, dimension int, after int64, most int) ([]Stale, error)
	// SetVectors gives rows that have not changed since their vectors.
	SetVectors(ctx context.Context, model string, ids []int64, vectors [][]float32) (set int, err error)
	Status(ctx context.Context) (Status, error)
}

// Row is one text.
type Row struct {
	Namespace, Key, Project string
	Thread, Chain           string
	Text                    string
	Metadata                json.RawMessage
	Model                   string
	Dimension               int
	Vector                  []float32
	At                      time.Time
}

// Query asks a namespace by words, and by a vector where there is one.
type Query struct {
	Namespace, Text, Project string
	Home                     string // the caller's project
	Vector                   []float32
	Model                    string
	Limit, MaxTokens         int
	MinFloor, ScoreRatio     float64
	ExcludeThread            string
}

// Answer is what was found, the best first.
type Answer struct {
	Hits                       []Hit
	By                         string // text, vectors, both
	Rows, OtherModel, NoVector int
}

// Hit is a row that was found.
type Hit struct {
	Key       string          `json:"key"`
	Score     float64         `json:"score"`
	Text      string          `json:"text"`
	Metadata  json.RawMessage `json:"metadata"`
	Truncated bool            `json:"truncated"`
	ThreadID  string          `json:"thread_id,omitempty"`
	Stored    string          `json:"stored"` // RFC 3339
	Elsewhere bool            `json:"other_project,omitempty"`
}

// Stale is a row that lacks a vector.
type Stale struct {
	ID   int64
	Text string
}

// Vectors are what texts became.
type Vectors struct {
	Model     string
	Dimension int
	Vectors   [][]float32
	Tokens    int64
	Cost      thread.Micros
	Unpriced  bool // what it costs is not known
	Cut       int  // texts of which the beginning alone counts
}

// Endpoint is where texts are embedded.
type Endpoint struct {
	Host  string `json:"host,omitempty"`
	Model string `json:"model,omitempty"`
	Why   string `json:"unavailable,omitempty"` // empty: it can be asked
	Try   string `json:"try,omitempty"`
}

// Status says what is in the index.
type Status struct {
	Path       string      `json:"path,omitempty"`
	Bytes      int64       `json:"bytes"`
	Namespaces []Namespace `json:"namespaces"`
}

// Namespace says what is in one.
type Namespace struct {
	Name     string  `json:"name"`
	Rows     int     `json:"rows"`
	Projects int     `json:"projects"`
	NoVector int     `json:"without_vector"`
	Models   []Model `json:"models,omitempty"`
}

// Model counts the rows with vectors of one model.
type Model struct {
	Name      string `json:"name"`
	Dimension int    `json:"dimension"`
	Rows      int    `json:"rows"`
}

// UnavailableError says why there are no vectors.
type UnavailableError struct {
	Why string // in rye-mcp's own words
	Try string // what a person can do
	Err error
}

func (e *UnavailableError) Error() string { return e.Why }

func (e *UnavailableError) Unwrap() error { return e.Err }

// Off is the answer of every tool of memory while memory is off.
type Off struct {
	Memory string `json:"memory"`
	Note   string `json:"note"`
}

// MemoryIsOff says so, and how a person switches it on.
func MemoryIsOff() Off {
	return Off{
		Memory: "off",
		Note:   "memory is off: nothing was stored, searched or sent. The person switches it on with enabled: true in ~/.ai/config/agent/memory.yaml.",
	}
}

// Tools returns the tools of the package.
func Tools(d Deps) []tool.Tool {
	if d.Now == nil {
		d.Now = time.Now
	}
	return []tool.Tool{embedTool(d), storeTool(d), queryTool(d), deleteTool(d), reindexTool(d), statusTool(d)}
}

// with makes a tool of a function that memory is opened for.
func with[In any](d Deps, def tool.Definition, f func(call, context.Context, In) (any, error)) tool.Tool {
	return tool.New(def, func(ctx context.Context, env tool.Env, in In) (any, error) {
		s, err := d.Open(ctx, env)
		if err != nil {
			return nil, err
		}
		if s == nil {
			return MemoryIsOff(), nil
		}
		return f(call{Deps: d, Session: s, env: env}, ctx, in)
	})
}

// call is one call of a tool.
type call struct {
	Deps
	*Session

	env tool.Env
}

// reserved begins the namespaces of rye-mcp itself, whose rows are signed.
const reserved = "rye."

var namespaceForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`) })

// checkNamespace refuses what no namespace may be called.
func checkNamespace(name string) *tool.Fault {
	if !namespaceForm().MatchString(name) || strings.Contains(name, "..") {
		return tool.Faultf(tool.CodeBadArguments, "namespace: want 1 to 100 letters, digits, dots, dashes and underscores, the first a letter or digit, and no two dots in a row").
			WithHint("choose a name such as notes or project-docs")
	}
	return nil
}

// checkOwn refuses a namespace that callers have no say in, too.
func checkOwn(name string) *tool.Fault {
	if f := checkNamespace(name); f != nil {
		return f
	}
	if strings.HasPrefix(strings.ToLower(name), reserved) {
		return tool.Faultf(tool.CodePermissionDenied, "namespace: those that begin with %s are kept by rye-mcp itself", reserved).
			WithHint("use rye/memory/write and rye/memory/recall, or a namespace of another name")
	}
	return nil
}

// Bounds of what a call gives.
const (
	maxKey      = 256       // bytes
	maxText     = 64 << 10  // bytes
	maxQuery    = 16 << 10  // bytes
	maxMetadata = 16 << 10  // bytes
	maxTexts    = 64        // of one call of embed
	maxKeys     = 200       // of one call of delete
	maxAll      = 512 << 10 // bytes of all texts of one call of embed
)

// checkKey refuses what no key may be.
func checkKey(key string) *tool.Fault {
	bad := strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) })
	if key == "" || len(key) > maxKey || bad || strings.TrimSpace(key) != key {
		return tool.Faultf(tool.CodeBadArguments, "key: want 1 to %d bytes of text in one line, without spaces around it", maxKey)
	}
	return nil
}

// checkText refuses a text that is empty or too long.
func checkText(field, text string, most int) *tool.Fault {
	switch {
	case strings.TrimSpace(text) == "":
		return tool.Faultf(tool.CodeBadArguments, "%s: is empty", field)
	case len(text) > most:
		return tool.Faultf(tool.CodeBadArguments, "%s: has %d bytes; at most %d are taken", field, len(text), most).
			WithHint("keep what matters, or split it over several calls")
	}
	return nil
}

// first is the first of some faults; nil as an error when there is none.
func first(faults ...*tool.Fault) error {
	for _, f := range faults {
		if f != nil {
			return f
		}
	}
	return nil
}

// spent is what every answer says of money and of what could not be done.
type spent struct {
	Cost string `json:"cost,omitempty"` // dollars, of embedding; empty: nothing was embedded
	Note string `json:"note,omitempty"`
}

// vectorOf embeds one text. Where that is not possible there is none, and the note says
// why: words alone are an honest result.
func (c call) vectorOf(ctx context.Context, text, otherwise string) (Vectors, spent, error) {
	got, err := c.Embed(ctx, []string{text})
	s := spentOf(got)
	if err == nil {
		return got, s, nil
	}
	why, soft := unavailable(err)
	if !soft {
		return Vectors{}, s, err
	}
	s.add(otherwise + ": " + why)
	return Vectors{}, s, nil
}

// unavailable says why vectors are not to be had, where a call goes on without them.
func unavailable(err error) (why string, soft bool) {
	var u *UnavailableError
	if errors.As(err, &u) {
		return u.Why, true
	}
	var f *tool.Fault
	if errors.As(err, &f) && f.Code == tool.CodeBudgetExhausted {
		return f.Message, true
	}
	return "", false
}

// spentOf tells the cost of vectors.
func spentOf(v Vectors) spent {
	var s spent
	switch {
	case v.Unpriced && v.Tokens > 0:
		s.Cost = fmt.Sprintf("not known, of %d tokens", v.Tokens)
	case v.Tokens > 0:
		s.Cost = v.Cost.String()
	}
	if v.Cut > 0 {
		s.add(fmt.Sprintf("texts that are too long for the model, so that the vector is of the beginning: %d", v.Cut))
	}
	return s
}

func (s *spent) add(note string) {
	if s.Note != "" {
		s.Note += "; "
	}
	s.Note += note
}

// hard is the fault of a call that can do nothing without vectors.
func hard(err error) error {
	var u *UnavailableError
	if !errors.As(err, &u) {
		return err
	}
	return tool.Faultf(tool.CodeToolFailed, "there are no vectors: %s", u.Why).
		WithHint("rye/rag/query and rye/rag/store work with words alone").WithTry("%s", u.Try)
}

// cleaned takes secrets out of a text.
func (c call) cleaned(text string, s *spent) string {
	clean, taken := c.Clean(c.env, text)
	if taken > 0 {
		s.add("what looks like a secret was taken out")
	}
	return clean
}
