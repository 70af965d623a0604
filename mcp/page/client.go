package page

import (
	"bytes"
	"context"
	"net/http"
	"net/url"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// AppClient is who asks by the MCP App of a client: that client, and never a person.
type AppClient func(*handler.Project) action.Caller

type appKey struct{}

func appFrom(ctx context.Context) AppClient {
	by, _ := ctx.Value(appKey{}).(AppClient)
	return by
}

// Answer is what the API answers to a client.
type Answer struct {
	Status int
	Type   string // media type
	Body   []byte
}

// appName is the MCP App in the log of what was done.
const appName = "mcp-app"

// Ask answers one request of the API inside this process, to a client that was let in by
// its own transport. The request counts as done by the client. There are no streams.
func (p *Page) Ask(ctx context.Context, by AppClient, method, path string, body []byte) (Answer, error) {
	target, err := url.Parse("/ui/api/" + path)
	if err != nil || target.Query().Has("stream") {
		return Answer{}, tool.Faultf(tool.CodeBadArguments, "%q is no path of the API that can be asked once", clip(path))
	}
	r, err := http.NewRequestWithContext(context.WithValue(ctx, appKey{}, by), method, target.String(), bytes.NewReader(body))
	if err != nil {
		return Answer{}, tool.Faultf(tool.CodeBadArguments, "%q is no path of the API", clip(path))
	}
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	p.api.ServeHTTP(w, r)
	return Answer{Status: w.status, Type: w.header.Get("Content-Type"), Body: w.body.Bytes()}, nil
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) { w.status = status }

func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }

// caller is who has made a call: the person at the page, or the client of an app.
func (c *call) caller(project *Project) action.Caller {
	if c.app == nil {
		return caller(project)
	}
	who := c.app(project.Project)
	who.Person, who.Detached = false, true // it looks, and nobody waits
	return who
}

// File is a file of the page, for those who put it together otherwise.
func File(name string) ([]byte, bool) {
	all, err := assets()
	file, known := all[name]
	return file.content, err == nil && known
}
