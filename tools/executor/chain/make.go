package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/shellline"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxTimeout is the longest time a tool may take, in seconds: a day.
const maxTimeout = 24 * 60 * 60

// making is a plan that is being made.
type making struct {
	builder  *Builder
	chain    *Chain
	gate     *trust.Gate
	specs    []spec // of the elements
	values   values
	vars     variables
	environ  map[string]string // what the chain adds to the environment
	place    place
	plan     *Plan
	accepted func() bool
}

// Plan makes a chain and a call ready for the primitive. Params is a JSON object that
// fits the tool's schema.
func (b *Builder) Plan(ctx context.Context, c *Chain, call tool.Env, params json.RawMessage) (*Plan, error) {
	m := b.making(c, call, params)
	steps := []func(context.Context) error{
		m.readSpecs, m.findPlace, m.readParams, m.findInterpreters, m.applyAnchor, m.takeConfig, m.verifyFiles, m.resolveConfig,
		m.fillCommandLine, m.readServer, m.finish,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return m.plan, nil
}

func (b *Builder) making(c *Chain, call tool.Env, params json.RawMessage) *making {
	m := &making{
		builder: b, chain: c, gate: b.Trust.Once(b.Trust.Settings), environ: map[string]string{},
		plan: &Plan{Chain: c, Call: call, Params: params, Warnings: slices.Clone(c.Warnings), Steps: make([]Step, len(c.Elements))},
	}
	m.accepted = once(b.World.Accepted)
	m.vars = variables{set: map[string]string{}, environ: b.World.Environ, dotenv: once(b.dotenv)}
	m.values = values{variable: m.vars.get, params: map[string]any{}}
	for i, e := range c.Elements {
		m.plan.Steps[i] = stepOf(e)
	}
	return m
}

func (m *making) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(m.plan.Warnings, text) {
		m.plan.Warnings = append(m.plan.Warnings, text)
	}
}

func (m *making) readSpecs(context.Context) error {
	for _, e := range m.chain.Elements {
		s, err := m.builder.specOf(e)
		if err != nil {
			return err
		}
		m.specs = append(m.specs, s)
	}
	m.plan.Warm = m.specs[0].Warm
	return nil
}

// readParams makes the values of {name}: what nothing can replace over the
// parameters of the call, those over the tool's own configuration and defaults.
func (m *making) readParams(context.Context) error {
	for _, s := range slices.Backward(m.specs[1:]) {
		m.offer(s.Config)
	}
	for _, s := range slices.Backward(m.specs) {
		maps.Copy(m.values.params, s.Defaults)
	}
	if key := m.shell(); key != "" && !m.isScript() {
		delete(m.values.params, key) // what a runtime has for it runs the file of a script
	}
	m.offer(m.specs[0].Config)
	decoder := json.NewDecoder(bytes.NewReader(m.plan.Params))
	decoder.UseNumber()
	var params map[string]any
	if err := decoder.Decode(&params); err != nil {
		return fmt.Errorf("parameters of %s: %w", m.chain.Tool().ID, err)
	}
	declared, _ := m.chain.Tool().Doc.Schema["properties"].(map[string]any)
	for name, value := range params {
		// A parameter that a runtime has a value for gets another one from a call only where the
		// tool says so: the command line of a script is its own.
		if _, runtimes := m.values.params[name]; runtimes && (declared[name] == nil || m.isScript() && name == m.shell()) {
			continue
		}
		m.values.params[name] = value
	}
	maps.Copy(m.values.params, m.place.values(m))
	m.values.params["params_json"] = string(m.plan.Params)
	for name := range declared {
		if _, known := m.values.params[name]; !known {
			m.values.params[name] = Absent{}
		}
	}
	return nil
}

// offer makes the plain values of a configuration known to templates.
func (m *making) offer(config map[string]any) {
	for key, value := range config {
		switch value.(type) {
		case string, bool, int64, float64:
			m.values.params[key] = value
		}
	}
}

// isScript reports whether the tool is a program, and not the description of one.
func (m *making) isScript() bool { return m.chain.isScript() }

// findInterpreters sets what the elements say of the environment, the tool's last.
func (m *making) findInterpreters(ctx context.Context) error {
	for i, e := range slices.Backward(m.chain.Elements) {
		if err := m.applyEnv(ctx, e, m.specs[i].Env, &m.plan.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// applyEnv sets what one element says of the environment.
func (m *making) applyEnv(ctx context.Context, e Element, s envSpec, step *Step) error {
	if s.Interpreter != nil {
		path, err := m.interpreter(ctx, e, s.Interpreter)
		if err != nil {
			return err
		}
		step.Interpreter = path
		if s.Interpreter.Var != "" {
			m.set(step, s.Interpreter.Var, path)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env.values)) {
		m.set(step, name, m.values.text(s.Env.values[name], nil))
	}
	for _, name := range s.Env.passed {
		if value, ok := m.vars.get(name); ok {
			m.set(step, name, value)
		}
	}
	return nil
}

// set gives a variable to the process, and to the templates that follow.
func (m *making) set(step *Step, name, value string) {
	m.environ[name], m.vars.set[name] = value, value
	if !slices.Contains(step.Environment, name) {
		step.Environment = append(step.Environment, name)
	}
}

// takeConfig takes the configuration of the chain, and notes what each element says.
func (m *making) takeConfig(context.Context) error {
	m.plan.Config = m.chain.Config
	for i, s := range m.specs {
		m.plan.Steps[i].Config = slices.Sorted(maps.Keys(s.Config))
	}
	return nil
}

// shell is the key of the command line that the runtimes of the chain run.
func (m *making) shell() string {
	key, _ := shellOf(m.specs)
	return key
}

// fillCommandLine fills the command line that the tool's own configuration has, each
// value quoted for its place.
func (m *making) fillCommandLine(context.Context) error {
	key := m.shell()
	if key == "" {
		return nil
	}
	template, ok := m.specs[0].Config[key].(string)
	if !ok {
		if TextOf(m.values.params[key]) == "" && !m.isScript() {
			return tool.Faultf(tool.CodeBadArguments, "%s needs the parameter %s: the command line to run", m.chain.Tool().ID, key)
		}
		return nil
	}
	var line shellline.Line
	rest := template
	for rest != "" {
		at := strings.IndexAny(rest, "${")
		if at < 0 {
			break
		}
		line.Text(rest[:at])
		value, after, known := m.values.next(rest[at:])
		if known {
			line.Value(value)
		} else {
			line.Text(value)
		}
		rest = after
	}
	line.Text(rest)
	text, err := line.Finish()
	if err != nil {
		return tool.Faultf(tool.CodeInvalidItem, "%s: a value cannot be put into its %s: %w", m.chain.Tool().ID, key, err).With("path", m.chain.Tool().Path)
	}
	m.values.params[key] = text
	return nil
}

// readServer makes the configuration of the MCP server of the tool. A server is the
// same for all calls, so that their parameters say nothing about it.
func (m *making) readServer(ctx context.Context) error {
	if m.chain.Server == nil {
		return nil
	}
	server := m.chain.Server
	s, err := m.builder.specOf(*server)
	if err != nil {
		return err
	}
	own := *m
	own.values.params = map[string]any{}
	for _, name := range []string{"project_path", "user_space", "system_space"} {
		own.values.params[name] = m.place.values(m)[name]
	}
	own.values.params["tool_path"], own.values.params["tool_dir"] = server.Path, filepath.Dir(server.Path)
	m.plan.Steps = append(m.plan.Steps, stepOf(*server))
	if err := own.applyEnv(ctx, *server, s.Env, &m.plan.Steps[len(m.plan.Steps)-1]); err != nil {
		return err
	}
	m.plan.Server, _ = own.values.fill(s.Config).(map[string]any)
	return nil
}

// Server is the plan of an mcp_server item alone, for whoever asks the server what it
// has.
func (b *Builder) Server(ctx context.Context, found *resolve.Found, call tool.Env) (*Plan, error) {
	e, err := b.element(b.Trust.Once(b.Trust.Settings), found, "")
	if err != nil {
		return nil, err
	}
	if e.Doc.ToolType != TypeServer {
		return nil, tool.Faultf(tool.CodeInvalidItem, "%s is no mcp_server item (tool_type)", found.ID).With("path", found.Path)
	}
	c := &Chain{Elements: []Element{e}, Server: &e}
	if e.Verified.Warning != "" {
		c.Warnings = []string{e.Verified.Warning}
	}
	m := b.making(c, call, json.RawMessage("{}"))
	m.plan.Steps = nil
	if err := m.readSpecs(ctx); err != nil {
		return nil, err
	}
	if err := m.readServer(ctx); err != nil {
		return nil, err
	}
	return m.plan, m.finish(ctx)
}

// finish makes what a process needs of what was found.
func (m *making) finish(context.Context) error {
	p := m.plan
	p.values = m.values
	m.values.params["call_json"] = m.callJSON()
	environ := slices.Concat(m.builder.base(), mark(p.Call))
	own, _ := p.Config["env"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		m.set(&p.Steps[0], name, m.values.text(TextOf(own[name]), nil))
	}
	for _, name := range slices.Sorted(maps.Keys(m.environ)) {
		environ = append(environ, name+"="+m.environ[name])
	}
	p.Environ = environ
	p.Dir = p.Call.Dir()
	for _, dir := range []string{m.place.cwd, text(p.Fill(p.Config["cwd"]))} {
		if dir != "" {
			p.Dir = dir
		}
	}
	if !filepath.IsAbs(p.Dir) {
		p.Dir = filepath.Join(p.Call.Dir(), p.Dir)
	}
	var err error
	p.Timeout, err = m.chain.timeoutOf(m.values.fill(m.plan.Config["timeout"]))
	return err
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

// mark names the thread to what a process starts, so that a thread started from there
// is this thread's child, and is found when the thread ends.
func mark(env tool.Env) []string {
	if env.ThreadID == "" {
		return nil
	}
	entries := process.Mark(env.Project, string(env.ThreadID))
	if env.TraceID != "" {
		entries = append(entries, process.TraceVariable+"="+env.TraceID)
	}
	return entries
}

// callJSON is everything that a runner of ours needs to load a tool and call it.
func (m *making) callJSON() string {
	call := struct {
		Tool     string          `json:"tool"`
		Project  string          `json:"project"`
		Base     string          `json:"base"`
		Path     []string        `json:"path"`
		Files    map[string]File `json:"files"`
		Unsigned []string        `json:"unsigned"`
		Params   json.RawMessage `json:"params"`
		Declared []string        `json:"declared"` // names of parameters
	}{m.place.tool, m.plan.Call.Dir(), m.place.base, m.place.path(), m.plan.Files, m.place.unsigned, m.plan.Params, m.chain.Declared()}
	raw, err := json.Marshal(call)
	if err != nil {
		return "{}" // bug; strings and checked JSON always marshal
	}
	return string(raw)
}

// once is a function that is called at most once, when it is first needed.
func once[T any](f func() T) func() T {
	var value T
	called := false
	return func() T {
		if !called {
			value, called = f(), true
		}
		return value
	}
}
