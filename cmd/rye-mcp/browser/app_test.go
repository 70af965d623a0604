package browser_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"testing"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/mcp/app"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// appHost is a client that shows apps: its page has the app in a frame without origin, and
// passes on what that asks.
type appHost struct {
	*httptest.Server

	p       *place
	client  *mcpclient.Client
	forApps []string // tools that an app may call
}

// hostPage does what the revision 2026-01-26 of MCP Apps asks of a host.
const hostPage = `<!DOCTYPE html><html lang="en"><title>Host</title><link rel="icon" href="data:,">
<iframe id="app" title="app" sandbox="allow-scripts" style="width: 100%; height: 820px; border: 0"></iframe>
<script>
const frame = document.getElementById('app');
const answers = {
	'ui/initialize': () => ({protocolVersion: '2026-01-26', hostInfo: {name: 'host', version: '1'},
		hostCapabilities: {serverTools: {}}, hostContext: {theme: 'dark'}}),
	'tools/call': params => fetch('/call', {method: 'POST', body: JSON.stringify(params)}).then(r => r.json()),
};
addEventListener('message', async event => {
	const {id, method, params} = event.data;
	if (event.source !== frame.contentWindow || id === undefined || !answers[method]) return;
	frame.contentWindow.postMessage({jsonrpc: '2.0', id, result: await answers[method](params)}, '*');
});
fetch('/app').then(r => r.text()).then(text => {
	frame.onload = () => { frame.dataset.shown = 'yes' };
	frame.srcdoc = text;
});
</script>`

// newAppHost starts a server over stdio, and a host for its app.
func (p *place) newAppHost() *appHost {
	p.Helper()
	ctx := p.Context()
	stdio := transport.NewStdioWithOptions("rye-mcp", nil, []string{"--stdio"},
		transport.WithCommandFunc(func(_ context.Context, _ string, _ []string, args []string) (*exec.Cmd, error) {
			return p.command(args...), nil //nolint:contextcheck // the server lives as long as the test
		}))
	h := &appHost{p: p, client: mcpclient.NewClient(stdio)}
	p.noError(h.client.Start(ctx))
	p.Cleanup(func() { _ = h.client.Close() })
	hello := mcp.InitializeRequest{}
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "host-of-apps", Version: "1"}
	hello.Params.Capabilities.Extensions = map[string]any{
		"io.modelcontextprotocol/ui": map[string]any{"mimeTypes": []string{"text/html;profile=mcp-app"}},
	}
	_, err := h.client.Initialize(ctx, hello)
	p.noError(err)
	tools, err := h.client.ListTools(ctx, mcp.ListToolsRequest{})
	p.noError(err)
	for _, t := range tools.Tools {
		if shownToApps(t) {
			h.forApps = append(h.forApps, t.Name)
		}
	}
	h.Server = httptest.NewServer(h)
	p.Cleanup(h.Close)
	return h
}

// shownToApps reports whether a tool names its app as who may call it.
func shownToApps(t mcp.Tool) bool {
	if t.Meta == nil {
		return false
	}
	ui, _ := t.Meta.AdditionalFields["ui"].(map[string]any)
	seenBy, _ := ui["visibility"].([]any)
	return slices.Contains(seenBy, any("app"))
}

// ServeHTTP implements [http.Handler].
func (h *appHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(hostPage))
	case "/app":
		req := mcp.ReadResourceRequest{}
		req.Params.URI = app.URI
		got, err := h.client.ReadResource(r.Context(), req)
		if err != nil || len(got.Contents) != 1 {
			http.Error(w, "no app", http.StatusBadGateway)
			return
		}
		_, _ = w.Write([]byte(got.Contents[0].(mcp.TextResourceContents).Text))
	case "/call":
		h.call(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (h *appHost) call(w http.ResponseWriter, r *http.Request) {
	req := mcp.CallToolRequest{}
	if err := json.NewDecoder(r.Body).Decode(&req.Params); err != nil || !slices.Contains(h.forApps, req.Params.Name) {
		http.Error(w, "an app may not call "+req.Params.Name, http.StatusForbidden)
		return
	}
	got, err := h.client.CallTool(r.Context(), req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	_ = json.NewEncoder(w).Encode(got)
}

// open shows the host's page, and returns the tab with what is in the frame.
func (h *appHost) open() *tab {
	h.p.Helper()
	outer := newTab(h.p, chromium.inContext(h.p), h.URL, desktop)
	outer.noError(outer.page.Navigate(h.URL))
	frame, err := outer.page.Timeout(patience).Element("iframe[data-shown]")
	outer.noError(err)
	inner, err := frame.Frame()
	outer.noError(err)
	return &tab{TB: h.p, place: h.p, page: inner, origin: h.URL, settled: outer.settled}
}

// TestApp: in a client that shows apps the board stands in the conversation, asks and is
// answered there, and starts, cancels and shows threads without a network of its own.
func TestApp(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	p.rye("keys", "generate")
	p.rye("sign", "--type", "directive", "**")
	h := p.newAppHost()
	if want := []string{"rye_app_act", "rye_app_look"}; !slices.Equal(slices.Sorted(slices.Values(h.forApps)), want) {
		t.Fatalf("apps may call %q, want %q", h.forApps, want)
	}
	b := h.open()
	b.press("button", "^Start a directive")
	b.says("Asks at its first limit")
	b.press("button", "^ask")
	b.fill("^n", "0")
	b.press("button", "^Start$")
	b.find("heading", "Go on about 0")
	asking := p.list()[0].ThreadID
	p.untilAsks(asking)
	b.press("button", "^Finish$")
	if got := p.untilIs(asking, thread.Completed); got.Result != "What I have." {
		t.Errorf("finished it became %+v", got)
	}
	b.says("completed")
	if buttons := b.names("button"); slices.Contains(buttons, "Export") || !slices.Contains(buttons, "Fork") {
		t.Errorf("a frame that may save no file has the buttons %q", buttons)
	}
	b.press("button", "^Resume$")
	b.fill("What it should do next", "What now?")
	b.press("button", "^Resume$", within{"dialog", "^Resume$"})
	p.until(func() (bool, string) {
		got := p.show(asking).Resolved
		return got != "" && got != asking && p.show(got).Result == "Resumed and done.", "nothing goes on with it"
	})
}
