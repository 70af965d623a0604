package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/snapshot"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

// sayer is a project whose one directive tells what a tool says.
const sayer = `
-- .ai/directives/sayer.md --
` + "```xml" + `
<directive name="sayer" version="1.0.0">
  <metadata><model tier="fast" /><limits spend="0.10" /><permissions><execute><tool>*</tool></execute></permissions></metadata>
</directive>
` + "```" + `

Say what it says.
-- .ai/tools/team/say.sh --
#!/bin/sh
# Says something.
echo first
-- model.yaml --
turns:
  - match: {turn: 1}
    tool_calls: [{name: rye_execute, input: {item_type: tool, item_id: team/say}}]
  - match: {last: first}
    text: It said first.
  - text: It said something else.
`

// TestItemsOfTheStart: a thread that another machine runs works by the items of the machine
// that has started it, whatever lies in the checkout there; status and show name them. Where
// the server has them altered, or not at all, no machine runs the thread, and it says why.
func TestItemsOfTheStart(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	here := newTeam(t, sayer)
	changed := func(name string) *place {
		p := here.clone(name, "ANTHROPIC_API_KEY="+testKey)
		p.write(".ai/tools/team/say.sh", []byte("#!/bin/sh\n# Says something.\necho changed\n"))
		p.work(name)
		return p
	}
	other := changed("other")
	h := here.serve()
	run := func() (thread.ID, view.Result) {
		t.Helper()
		started := must[view.Started](h, "rye_execute", args{"item_id": "sayer", "async": true})
		ended := must[view.WaitResult](h, "wait_threads", args{"thread_ids": []string{string(started.ThreadID)}})
		return started.ThreadID, ended.Results[started.ThreadID]
	}
	id, said := run()
	status := must[view.Status](h, "get_status", args{"thread_id": id})
	if said.Result != "It said first." || status.Worker != "other" || !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(status.Snapshot) {
		t.Errorf("where the checkout differs it is %+v\n%+v", said, status)
	}
	if shown := here.mustCLI(here.dir, "threads", "show", string(id)); !strings.Contains(shown, "snapshot "+status.Snapshot) || !strings.Contains(shown, "other") {
		t.Errorf("shown is\n%s", shown)
	}

	// Another machine, which has nothing of the snapshot yet, takes what follows.
	other.write(".ai/config/agent/resilience.yaml", []byte("on_limit: {action: ask}\n"))
	changed("third")
	content, err := os.ReadFile(filepath.Join(here.dir, ".ai", "tools", "team", "say.sh"))
	here.noError(err)
	hash, server := string(snapshot.HashOf(content)), here.rows()
	for _, broken := range []struct{ sql, want string }{
		{`UPDATE snapshot_blobs SET content = overlay(content placing '\x2020'::bytea from 3) WHERE hash = decode($1, 'hex')`, "content " + hash + " is not what it was"},
		{`DELETE FROM snapshot_blobs WHERE hash = decode($1, 'hex')`, "content " + hash + " is missing"},
	} {
		done, err := server.Exec(t.Context(), broken.sql, hash)
		here.noError(err)
		id, said := run()
		status := must[view.Status](h, "get_status", args{"thread_id": id})
		if done.RowsAffected() != 1 || said.Status != thread.Error || !strings.Contains(status.Error, "the items that the thread works by cannot be had") || !strings.Contains(status.Error, broken.want) {
			t.Errorf("want %q, it is\n%+v\n%+v", broken.want, said, status)
		}
	}
}

// rows are those of the team's project on the server.
func (p *place) rows() *pgxpool.Pool {
	p.Helper()
	var url string
	for _, entry := range p.env {
		if value, is := strings.CutPrefix(entry, storeurl.Variable+"="); is {
			url = value
		}
	}
	server, err := postgres.Connect(p.Context(), postgres.Options{URL: url})
	p.noError(err)
	project, err := server.Project(p.Context(), "git.example/team/app")
	p.noError(err)
	p.Cleanup(func() { _ = project.Close(); _ = server.Close() }) // nothing is left to be written
	return project.Pool()
}
