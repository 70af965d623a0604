package web

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// scene are the tools with the settings of a test.
type scene struct {
	t        *testing.T
	settings config.Web
	env      map[string]string
	resolver *net.Resolver
	tools    *tool.Registry
}

// newScene may fetch from servers of the test when hosts says so.
func newScene(t *testing.T, hosts ...string) *scene {
	t.Helper()
	s := &scene{t: t, settings: config.Web{AllowHosts: hosts}, env: map[string]string{}}
	s.tools = s.registry()
	return s
}

func (s *scene) registry() *tool.Registry {
	tools, err := tool.NewRegistry(Tools(Deps{
		Settings: func() (config.Web, error) { return s.settings, nil },
		Getenv:   func(name string) string { return s.env[name] }, Resolver: s.resolver,
	})...)
	if err != nil {
		s.t.Fatal(err)
	}
	return tools
}

const local = "127.0.0.1"

func (s *scene) call(id string, args any) (any, error) {
	s.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		s.t.Fatal(err)
	}
	found, ok := s.tools.Get(id)
	if !ok {
		s.t.Fatalf("no tool %s", id)
	}
	return found.Call(s.t.Context(), tool.Env{}, raw)
}

type args map[string]any

// fetch wants a page.
func (s *scene) fetch(args args) *fetchResult {
	s.t.Helper()
	got, err := s.call("rye/web/fetch", args)
	if err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	r, ok := got.(*fetchResult)
	if !ok {
		s.t.Fatalf("a result of type %T", got)
	}
	return r
}

// refused wants a fault.
func (s *scene) refused(id string, args args, code tool.Code) *tool.Fault {
	s.t.Helper()
	got, err := s.call(id, args)
	f, ok := errors.AsType[*tool.Fault](err)
	if !ok || f.Code != code {
		s.t.Fatalf("%v: %+v, %v; want %s", args, got, err, code)
	}
	if f.Hint == "" {
		s.t.Errorf("%v: %v has no hint", args, f)
	}
	return f
}

// serve answers each path with a function.
func serve(t *testing.T, paths map[string]http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	for path, handle := range paths {
		mux.HandleFunc(path, handle)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// page answers with a body of a type.
func page(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body))
	}
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
