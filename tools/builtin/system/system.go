// Package system is the tools rye/core/system and rye/core/processes: where a model
// is, and what of this project runs. Neither tells secrets, nor of anybody else.
package system

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Deps is what the tools need.
type Deps struct {
	Version string
	User    string // the folder that holds the user's .ai; empty for none
	Now     func() time.Time
	// Limits are those that a thread of this project has when nothing else is said, by
	// name, and how many run at the same time.
	Limits func() (limits item.LimitSet, running int, err error)
	// Threads are those of this project that have not ended, newest first.
	Threads func(ctx context.Context) ([]Thread, error)
}

// Thread is one that has not ended.
type Thread struct {
	ID        string    `json:"thread_id"`
	Item      string    `json:"item"` // the directive, or the tool that runs in the background
	Status    string    `json:"status"`
	Parent    string    `json:"parent_id,omitempty"`
	PID       int       `json:"pid,omitempty"`
	Elsewhere bool      `json:"elsewhere,omitempty"` // the process is in another container, or on another machine
	Started   time.Time `json:"started_at"`
	Tools     []Tool    `json:"tools,omitempty"` // processes that its tools have started
}

// Tool is a process that a tool has started.
type Tool struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// Tools returns the tools of the package.
func Tools(deps Deps) []tool.Tool { return []tool.Tool{systemTool(deps), processesTool(deps)} }

type systemInput struct {
	Item string `json:"item,omitempty" enum:"all,paths,time,runtime,limits" default:"all"`
}

type systemOutput struct {
	Paths   *paths   `json:"paths,omitempty"`
	Time    *clock   `json:"time,omitempty"`
	Runtime *machine `json:"runtime,omitempty"`
	Limits  *limits  `json:"limits,omitempty"`
}

type paths struct {
	Project   string `json:"project"`
	UserSpace string `json:"user_space,omitempty"`
	Items     string `json:"project_items"` // where items of the project stand
	Temporary string `json:"temporary"`
}

type clock struct {
	UTC      string `json:"utc"`
	Local    string `json:"local"`
	Timezone string `json:"timezone"`
}

type machine struct {
	Version    string          `json:"rye_mcp"`
	OS         string          `json:"os"`
	Arch       string          `json:"arch"`
	Processors int             `json:"processors"`
	Programs   map[string]bool `json:"programs"` // whether they are installed
}

type limits struct {
	Thread  item.LimitSet `json:"thread_defaults"`
	Running int           `json:"threads_at_once"`
}

// programs are those that tools and models often need.
var programs = []string{"bash", "git", "python3", "node", "go", "make", "docker"}

func systemTool(deps Deps) tool.Tool {
	return tool.New(tool.Definition{
		ID:          "rye/core/system",
		Description: "Paths, time, machine, installed programs, default limits of threads.",
		ReadOnly:    true,
	}, deps.system)
}

func (d Deps) system(_ context.Context, env tool.Env, in systemInput) (any, error) {
	wants := func(item string) bool { return in.Item == item || in.Item == "all" }
	var out systemOutput
	if wants("paths") {
		out.Paths = &paths{Project: env.Dir(), UserSpace: d.User, Items: filepath.Join(env.Project, ".ai"), Temporary: os.TempDir()}
	}
	if wants("time") {
		now := d.Now()
		zone, _ := now.Local().Zone()
		out.Time = &clock{now.UTC().Format(time.RFC3339), now.Local().Format(time.RFC3339), zone}
	}
	if wants("runtime") {
		out.Runtime = &machine{Version: d.Version, OS: runtime.GOOS, Arch: runtime.GOARCH, Processors: runtime.NumCPU(), Programs: map[string]bool{}}
		for _, name := range programs {
			_, err := exec.LookPath(name)
			out.Runtime.Programs[name] = err == nil
		}
	}
	if wants("limits") {
		set, running, err := d.Limits()
		if err != nil {
			return nil, err
		}
		out.Limits = &limits{set, running}
	}
	return out, nil
}

type processesInput struct {
	ThreadID string `json:"thread_id,omitempty" alias:"run_id"`
}

type processesOutput struct {
	Threads []Thread `json:"threads"`
	Note    string   `json:"note,omitempty"`
}

// maxThreads is how many threads one answer names.
const maxThreads = 100

func processesTool(deps Deps) tool.Tool {
	return tool.New(tool.Definition{
		ID:          "rye/core/processes",
		Description: "List the threads of this project that have not ended, with their processes and those of their tools.",
		ReadOnly:    true,
	}, deps.processes)
}

func (d Deps) processes(ctx context.Context, env tool.Env, in processesInput) (any, error) {
	threads, err := d.Threads(ctx)
	if err != nil {
		return nil, err
	}
	started, err := process.ToolsOf(env.Project)
	if err != nil {
		return nil, err
	}
	out := processesOutput{Threads: []Thread{}}
	for _, t := range threads {
		if in.ThreadID != "" && t.ID != in.ThreadID {
			continue
		}
		if len(out.Threads) == maxThreads {
			out.Note = "there are more; name one with thread_id"
			break
		}
		for _, s := range started[t.ID] {
			if s.PID != t.PID {
				t.Tools = append(t.Tools, Tool{s.PID, item.Shown(s.Name)})
			}
		}
		out.Threads = append(out.Threads, t)
	}
	if in.ThreadID != "" && len(out.Threads) == 0 {
		return nil, tool.Faultf(tool.CodeNotFound, "no thread of that id is working").WithHint("Call rye/core/processes without thread_id.")
	}
	return out, nil
}
