package app

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/js"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// The modules are one script: it parses, declares each name once, has what the transport
// needs and nothing of the page's own surroundings.
func TestScript(t *testing.T) {
	t.Parallel()
	text, err := script()
	if err != nil {
		t.Fatal(err)
	}
	ast, err := js.Parse(parse.NewInputString(text), js.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, v := range ast.Declared {
		if name := string(v.Data); seen[name] {
			t.Errorf("%s is declared twice", name)
		} else {
			seen[name] = true
		}
	}
	for _, want := range []string{"makeShell", "makeHost", "makeBoard", "projectSpend"} {
		if !seen[want] {
			t.Errorf("%s is not there", want)
		}
	}
	for _, never := range []string{"makeApi", "startPage"} {
		if seen[never] {
			t.Errorf("%s is there", never)
		}
	}
	for _, statement := range ast.List {
		switch statement.(type) {
		case *js.ImportStmt, *js.ExportStmt:
			t.Errorf("a module is left: %.100s", statement)
		}
	}
}

// The document runs its own script and style, by their hashes, and nothing else.
func TestDocument(t *testing.T) {
	t.Parallel()
	read, err := Reading()
	if err != nil || len(read.Contents) != 1 {
		t.Fatal(read, err)
	}
	text, err := document()
	if err != nil {
		t.Fatal(err)
	}
	for tag, source := range map[string]string{"script": "script-src", "style": "style-src"} {
		inside := regexp.MustCompile(`(?s)<` + tag + `(?: [^>]*)?>(.*)</` + tag + `>`).FindStringSubmatch(text)
		if inside == nil || !strings.Contains(text, source+" '"+hashOf(inside[1])+"'") {
			t.Errorf("the policy does not name the %s", tag)
		}
	}
	if strings.Contains(text, "unsafe") || !strings.HasPrefix(text, "<!DOCTYPE html>") {
		t.Errorf("%.300s", text)
	}
}

// noProjects are those of a client that is in none.
type noProjects struct{}

var errNoProject = errors.New("no project is open")

func (noProjects) Project(context.Context, string) (*handler.Project, error) {
	return nil, errNoProject
}
func (noProjects) Holding(context.Context, []thread.ID, func(string) bool) (*handler.Project, error) {
	return nil, nil //nolint:nilnil // threads lead nowhere
}
func (noProjects) Several() bool { return false }

// exchange sends lines to a server that has the app, and returns what it answers, by id.
func exchange(t *testing.T, capabilities string, lines ...string) map[string]json.RawMessage {
	t.Helper()
	s := server.New(server.Options{Version: "1"})
	s.OfferResources(Resources{})
	Offer(s, Options{Projects: noProjects{}, Version: "1", Now: time.Now})
	in := `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"c","version":"1"}}}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + strings.Join(lines, "\n") + "\n"
	var out strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.ServeStdio(ctx, strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	answers := map[string]json.RawMessage{}
	for line := range strings.Lines(out.String()) {
		var m struct {
			ID string `json:"id"`
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.ID != "" {
			answers[m.ID] = json.RawMessage(line)
		}
	}
	return answers
}

const (
	shows = `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`
	list  = `{"jsonrpc":"2.0","id":"list","method":"tools/list"}`
	look  = `{"jsonrpc":"2.0","id":"look","method":"tools/call","params":{"name":"rye_app_look","arguments":{"path":"session"}}}`
	open  = `{"jsonrpc":"2.0","id":"read","method":"resources/read","params":{"uri":"ui://rye/board"}}`
)

// A client that shows apps gets the document, and the tools of its buttons.
func TestShown(t *testing.T) {
	t.Parallel()
	got := exchange(t, shows, list, look, open)
	for id, wants := range map[string][]string{
		"list": {`"rye_app_look"`, `"rye_app_act"`, `"visibility":["app"]`, `"resourceUri":"ui://rye/board"`},
		"look": {`"status":200`, `approve_thread`},
		"read": {`text/html;profile=mcp-app`, `makeShell`, `"prefersBorder":true`},
	} {
		for _, want := range wants {
			if !strings.Contains(string(got[id]), want) {
				t.Errorf("%s lacks %s: %.500s", id, want, got[id])
			}
		}
	}
}

// TestAttackToolsOfTheApp: a client that shows no apps, such as a model's, calls the tools of the app by their names.
// There are none for it: they are not listed, and calls are refused.
func TestAttackToolsOfTheApp(t *testing.T) {
	t.Parallel()
	for _, capabilities := range []string{
		`{}`, `{"extensions":{"io.modelcontextprotocol/ui":{}}}`, `{"extensions":{"io.modelcontextprotocol/ui":"x"}}`, `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/plain",7]}}}`,
	} {
		got := exchange(t, capabilities, list, look)
		if strings.Contains(string(got["list"]), "rye_app") || !strings.Contains(string(got["look"]), `"error"`) || strings.Contains(string(got["look"]), `"status":200`) {
			t.Errorf("%s: %.300s\n%.300s", capabilities, got["list"], got["look"])
		}
	}
}
