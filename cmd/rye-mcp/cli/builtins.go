package cli

import (
	"context"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/builtin/file"
	"github.com/rye-mcp/rye-mcp/tools/builtin/git"
	"github.com/rye-mcp/rye-mcp/tools/builtin/keys"
	"github.com/rye-mcp/rye-mcp/tools/builtin/mcp"
	memtools "github.com/rye-mcp/rye-mcp/tools/builtin/memory"
	"github.com/rye-mcp/rye-mcp/tools/builtin/rag"
	"github.com/rye-mcp/rye-mcp/tools/builtin/shell"
	"github.com/rye-mcp/rye-mcp/tools/builtin/system"
	"github.com/rye-mcp/rye-mcp/tools/builtin/testrun"
	"github.com/rye-mcp/rye-mcp/tools/builtin/web"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// builtins are the tools that are functions of this program. None of them touches the
// .ai of the folder user. They ask for what they need of the project when one is
// called.
func (p *project) builtins(sys System, user string) []tool.Tool {
	all := append(file.Tools(file.Deps{User: user, State: p.stateDir, Now: sys.Now}), shell.New(p.reach.Shell))
	all = append(all, git.Tools(git.Deps{Environ: sys.Environ, Scratch: scratchFolder(sys)})...)
	all = append(all, web.Tools(web.Deps{
		Settings: func() (config.Web, error) { set, err := p.toolSettings(); return set.Web, err },
		Getenv:   sys.Getenv,
	})...)
	all = append(all, testrun.New(testrun.Deps{
		Tests: func() (map[string]map[string]config.TestCommand, error) {
			set, err := p.toolSettings()
			return set.Tests, err
		},
		Home: sys.HomeDir, Environ: sys.Environ,
	}), keys.New(keys.Deps{Keyring: p.trust.Keyring}))
	all = append(all, mcp.Tools(p.servers(sys))...)
	all = append(all, rag.Tools(p.ragDeps(sys))...)
	all = append(all, memtools.Tools(p.entryDeps())...)
	return append(all, system.Tools(system.Deps{
		Version: version(), User: user, Now: sys.Now, Limits: p.defaultLimits, Threads: p.workingThreads,
	})...)
}

// stateDir is where the threads of the project are; empty while there are none, and for
// a command that looks at no project.
func (p *project) stateDir() string {
	if p.state == nil {
		return ""
	}
	return p.state.Home().Dir
}

// toolSettings are the settings of tools: at the moment, or of the thread that this
// process runs.
func (p *project) toolSettings() (config.Tools, error) {
	if p.decided != nil {
		set, _, err := p.decided.Tools()
		return set, err
	}
	set, _, err := p.config.Read().Tools()
	return set, err
}

// defaultLimits are those of a thread when nothing else is said, and how many run at
// the same time.
func (p *project) defaultLimits() (item.LimitSet, int, error) {
	call := p.control.Settings.Begin()
	resilience, _, err := call.Config.Resilience()
	return resilience.Limits, call.Slots(), err
}

// workingThreads are the threads of the project that have not ended, newest first.
func (p *project) workingThreads(ctx context.Context) ([]system.Thread, error) {
	page, err := p.control.View.List(ctx, view.ListRequest{States: []thread.State{thread.Created, thread.Running}, Limit: 200})
	if err != nil {
		return nil, err
	}
	var all []system.Thread
	for _, s := range page.Threads {
		rec, err := p.store.Get(ctx, s.ThreadID)
		if err != nil {
			return nil, err
		}
		t := system.Thread{
			ID: string(s.ThreadID), Item: s.Directive, Status: string(s.Status), Parent: string(s.ParentID), PID: rec.PID,
			Elsewhere: rec.PID != 0 && rec.Host != p.place.Host, Started: s.CreatedAt,
		}
		if s.Queued {
			t.Status = "queued"
		}
		all = append(all, t)
	}
	return all, nil
}
