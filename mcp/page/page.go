package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	exchangePath = "/ui/api/exchange"
	// maxBody is how many bytes of a request are read: inputs of a directive can be files.
	maxBody = 4 << 20
	// workTime bounds how long a change that a page asked for may take; it goes on when
	// the page is closed.
	workTime = 5 * time.Minute
)

// Projects are those that the page shows.
type Projects interface {
	// List names them: the one that is shown at first comes first.
	List() []Named
	// Open opens the one of a name; an empty one is the first.
	Open(ctx context.Context, name string) (*Project, error)
}

// Named is a project by the name that the page calls it by.
type Named struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// Project is what the page works on.
type Project struct {
	Name string
	*handler.Project
	// Export makes one signed file of a thread.
	Export func(ctx context.Context, id thread.ID, scope Scope) ([]byte, error)
}

// Scope says what is exported with a thread: those of its chain, and those below.
type Scope struct{ Chain, Tree bool }

// Options are what a page is made of.
type Options struct {
	Projects Projects
	Version  string
	Now      func() time.Time
	Log      zerolog.Logger
	// Ended ends the streams; the server waits for those who are connected.
	Ended <-chan struct{}
	// Client tells who is at the other end of a connection; nil: that is not known.
	Client func(client, server netip.AddrPort) Client
}

// Client is who is at the other end of a connection, as far as that is known.
type Client struct {
	Thread  bool // a thread, or what its tools have started
	Another bool // another user of this machine
}

// Page serves the page and its API. The server in front of it has checked the Host.
type Page struct {
	projects Projects
	version  string
	now      func() time.Time
	log      zerolog.Logger
	ended    <-chan struct{}
	client   func(client, server netip.AddrPort) Client
	tokens   *tokens
	denied   denials
	streams  streams
	api      *http.ServeMux
	// writeTime bounds how long a client may take to read one line of a stream.
	writeTime time.Duration
}

// New returns a page that nobody has a token for yet.
func New(o Options) *Page {
	p := &Page{projects: o.Projects, version: o.Version, now: o.Now, log: o.Log, ended: o.Ended, client: o.Client, tokens: newTokens(o.Now), writeTime: writeTime}
	p.api = p.routes()
	return p
}

// Token makes a token; one that is read-only may look and change nothing.
func (p *Page) Token(readOnly bool) string { return p.tokens.grant(readOnly) }

// Code makes a code that is good for one token, for a minute: for places that others
// can read, such as the arguments of a browser.
func (p *Page) Code(readOnly bool) string { return p.tokens.code(readOnly) }

// ServeHTTP serves the files to everybody, and the API to who has a token.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if refused := checkOrigin(r); refused != nil {
		p.denied.note(p, r, "another page")
		writeFault(w, refused)
		return
	}
	if !isAPI(r.URL.Path) {
		serveFile(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	p.api.ServeHTTP(w, r)
}

// call is one request of the API.
type call struct {
	w     http.ResponseWriter
	r     *http.Request
	token token
	body  []byte
	app   AppClient // nil: a person at the page asks
	// For the log: what was done, to what.
	operation, about string
	recorded         bool
}

// query is a parameter of the address.
func (c *call) query(name string) string { return c.r.URL.Query().Get(name) }

// flag reports whether a parameter of the address is set.
func (c *call) flag(name string) bool { v := c.query(name); return v != "" && v != "0" && v != "false" }

// number is a parameter of the address; 0 when it is not given.
func (c *call) number(name string) (int64, error) {
	text := c.query(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, tool.CodeBadArguments, "%s is no number: %s", name, clip(text))
	}
	return n, nil
}

// open opens the project that a call names.
func (p *Page) open(ctx context.Context, c *call) (*Project, error) {
	return p.projects.Open(ctx, c.query("project"))
}

// answerer answers a call. Its result becomes JSON; nil: it has written the answer
// itself.
type answerer func(ctx context.Context, c *call) (any, error)

// handle is an answerer as a handler: token, body, answer and log.
func (p *Page) handle(operation string, answer answerer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{w: w, r: r, operation: operation, about: r.PathValue("id"), app: appFrom(r.Context())}
		began := p.now()
		result, err := p.answer(r.Context(), c, answer)
		if !c.recorded {
			p.record(c, p.now().Sub(began), err)
		}
		switch {
		case err != nil:
			writeFault(w, err)
		case result != nil:
			writeJSON(w, http.StatusOK, result)
		}
	}
}

func (p *Page) answer(ctx context.Context, c *call, answer answerer) (any, error) {
	var refused *refusal
	if c.token, refused = p.admit(c.r); refused != nil {
		return nil, refused
	}
	if c.r.Method == http.MethodPost {
		var err error
		if c.body, err = io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody)); err != nil {
			return nil, unread(err)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), workTime)
		defer cancel()
	}
	wire := http.NewResponseController(c.w)
	_ = wire.SetReadDeadline(time.Time{}) // all of it was read; the answer takes what it takes
	_ = wire.SetWriteDeadline(time.Now().Add(workTime))
	return answer(ctx, c)
}

func unread(err error) error {
	if errors.As(err, new(*http.MaxBytesError)) {
		return refuse(http.StatusRequestEntityTooLarge, tool.CodeBadArguments, "a request has at most %d bytes", maxBody)
	}
	return refuse(http.StatusBadRequest, tool.CodeBadArguments, "the request was cut off")
}

// record writes down what a token did.
func (p *Page) record(c *call, took time.Duration, err error) {
	if c.token.name == "" || c.app != nil && c.r.Method == http.MethodGet {
		return // refusals are counted, and each call of a tool has its line
	}
	event := p.log.Info()
	if err != nil {
		event = p.log.Warn().Str("code", string(tool.AsFault(err).Code))
	}
	if c.about != "" {
		event = event.Str("about", clip(c.about))
	}
	event.Str("token", c.token.name).Bool("read_only", c.token.readOnly).Str("method", c.r.Method).
		Str("operation", c.operation).Str("remote", c.r.RemoteAddr).Dur("took", took).Msg("page")
}

// statuses of faults; others are 400, since the call could be made otherwise.
var statuses = map[tool.Code]int{
	tool.CodeNotFound: http.StatusNotFound, tool.CodePermissionDenied: http.StatusForbidden,
	tool.CodeConflict: http.StatusConflict, tool.CodeBusy: http.StatusServiceUnavailable, tool.CodeInternal: http.StatusInternalServerError,
	tool.CodeTimeout: http.StatusGatewayTimeout, tool.CodeDiskFull: http.StatusInsufficientStorage,
}

// writeFault answers with an error as tools tell it, and with what a person can do.
func writeFault(w http.ResponseWriter, err error) {
	fault, status := tool.AsFault(err), http.StatusBadRequest
	if known, ok := statuses[fault.Code]; ok {
		status = known
	}
	if refused, ok := errors.AsType[*refusal](err); ok {
		status = refused.status
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="rye-mcp page"`)
	}
	writeJSON(w, status, failure{told{fault}})
}

// failure is the body of an answer that is an error.
type failure struct {
	Error told `json:"error"`
}

// told is a fault as the page shows it.
type told struct{ fault *tool.Fault }

// MarshalJSON writes the details, and over them what every fault has.
func (t told) MarshalJSON() ([]byte, error) {
	members := map[string]any{}
	for name, detail := range t.fault.Details {
		members[name] = detail
	}
	members["code"], members["message"] = t.fault.Code, t.fault.Message
	if t.fault.Hint != "" {
		members["hint"] = t.fault.Hint
	}
	if t.fault.Try != "" {
		members["try"] = t.fault.Try
	}
	return plain(members)
}

// plain is JSON without the escapes for HTML: nothing here is put into markup.
func plain(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := plain(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"the answer could not be written"}}`+"\n")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}
