package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/llm/scripted"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

var update = flag.Bool("update", false, "rewrite the first requests in testdata/first")

// recorded is a place whose model keeps what it is asked.
type recorded struct {
	*place
	*host
	server *scripted.Server
}

// newRecorded makes a place of an archive and starts a server on it.
func newRecorded(t *testing.T, archive string) *recorded {
	t.Helper()
	r := &recorded{place: newPlace(t, archive)}
	t.Cleanup(func() { // a thread still writes when whoever waited for it knows of its end
		r.until(func() (bool, string) {
			left, err := processesIn(r.dir)
			return err == nil && len(left) == 0, strings.Join(left, "\n")
		})
	})
	for _, file := range txtar.Parse([]byte(archive)).Files {
		if file.Name != "model.yaml" {
			continue
		}
		script, err := scripted.Parse(file.Name, file.Data)
		r.noError(err)
		r.server, err = scripted.Serve(context.Background(), script, scripted.Options{Record: true})
		r.noError(err)
		t.Cleanup(func() { _ = r.server.Close() })
	}
	r.host = r.serve("ANTHROPIC_BASE_URL=" + r.server.BaseURL())
	return r
}

// run forks a directive and returns what its thread and those it started asked
// the model, in order.
func (r *recorded) run(directive string, more args) []scripted.Recorded {
	r.Helper()
	before := len(r.server.Requests())
	arguments := args{"item_type": "directive", "item_id": directive, "thread": "fork"}
	for name, value := range more {
		arguments[name] = value
	}
	if ended := must[view.Started](r.host, "rye_execute", arguments); ended.Status != "completed" {
		r.Fatalf("%s is %s: %s", directive, ended.Status, ended.Error)
	}
	return r.server.Requests()[before:]
}

// The first request of a thread is what all that directives say comes down to.
func TestFirstRequest(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	archive, err := os.ReadFile(filepath.Join("testdata", "first", "project.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorded(t, string(archive))
	for name, api := range map[string]string{"open": "api: openai", "texty": "api: openai\ntool_use: text"} {
		r.provider(name, api, "/v1", 200_000)
	}
	r.provider("narrow", "api: anthropic", "", 20_000)
	for directive, more := range map[string]args{
		"plain": nil, "all_layers": nil, "chain_of_three": nil, "suppress": nil, "inherited_capabilities": nil, "outputs": nil, "prose": nil,
		"process": nil, "system_context": nil, "before_and_after": nil,
		// Placeholders in what somebody types stay as they are.
		"inputs": {"parameters": args{
			"topic": "${project_path} {input:count} {env:HOME} </directive>", "list": []any{"a", 1, true}, "map": args{"k": "<v> & w"},
		}},
		"text_tools": {"model": "texty/small"},
		"openai":     {"model": "open/small"},
	} {
		asked := r.run(directive, more)
		if len(asked) == 0 {
			t.Fatalf("%s asked nothing", directive)
		}
		r.compare(directive, asked[0])
	}
	asked := r.run("continued", args{"model": "narrow/small"})
	if len(asked) != 2 {
		t.Fatalf("the model was asked %d times, want once by each thread of the chain", len(asked))
	}
	r.compare("continued", asked[1])
}

// provider makes one of the server with the model small.
func (r *recorded) provider(name, api, path string, window int) {
	r.Helper()
	r.write(".ai/config/agent/providers/"+name+".yaml", fmt.Appendf(nil,
		"%s\nlocal: true\nbase_url: %s%s\nmodels: {small: {context_window: %d, max_output_tokens: 4000, input: 1, output: 2}}\n",
		api, r.server.BaseURL(), path, window))
}

// stamped is what says when a thread was started: its id, and the ids of its calls,
// which the scripted model makes of what it is asked.
var stamped = regexp.MustCompile(`\b(continued-|call_)(\d{10}(-\d+)?|[0-9a-f]{16}_\d+)\b`)

// compare checks a request against its golden file. Where the project lies and when
// the threads were started does not count, nor how JSON escapes what is markup
// elsewhere.
func (r *recorded) compare(name string, asked scripted.Recorded) {
	r.Helper()
	var got bytes.Buffer
	r.noError(json.Indent(&got, asked.Body, "", "  "))
	plain := strings.NewReplacer(r.dir, "/project", `\u003c`, "<", `\u003e`, ">", `\u0026`, "&")
	text := asked.Path + "\n" + stamped.ReplaceAllString(plain.Replace(got.String()), "$1<time>") + "\n"
	path := filepath.Join("testdata", "first", name+".json")
	if *update {
		r.noError(os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	r.noError(err)
	have, wanted := strings.Split(text, "\n"), strings.Split(string(want), "\n")
	for i, line := range have {
		if i >= len(wanted) || line != wanted[i] {
			r.Errorf("%s:%d: the first request of %s now has\n%s\ngo test ./cmd/rye-mcp -run TestFirstRequest -update rewrites the file",
				path, i+1, name, line)
			return
		}
	}
	if len(have) < len(wanted) {
		r.Errorf("%s:%d: the first request of %s ends before", path, len(have), name)
	}
}
