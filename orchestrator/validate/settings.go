package validate

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/runtime/hook"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/tools/action"
)

// settings reads all settings, and says what is wrong with them.
func (v *Validator) settings() ([]Finding, shared) {
	l := &list{}
	var s shared
	names, err := v.Config.SettingsNames()
	l.settings(nil, err)
	for _, name := range names {
		explained, err := v.Config.Explain(name)
		l.settings(explained.Warnings, err)
	}
	_, warnings, err := v.Config.ErrorRules()
	l.settings(warnings, err)
	s.hooks, warnings, err = hook.Load(v.Config, nil)
	l.settings(warnings, err)
	v.hooksFiles(l)
	if s.risk, _, err = v.Config.Risk(); err != nil {
		s.risk = nil // told above
	}
	if resilience, _, err := v.Config.Resilience(); err == nil {
		s.limits, s.preload = resilience.Limits, resilience.ToolPreload.MaxTokens
	}
	v.settingsHooks(l, s)
	v.summaryDirective(l, s)
	return l.found, s
}

// summaryDirective looks at the directive that sums up threads which hand over.
// They do so without it too, so that what is wrong with it is a warning.
func (v *Validator) summaryDirective(l *list, s shared) {
	explained, err := v.Config.Explain(config.CoordinationSettings)
	if err != nil {
		return // told above
	}
	for _, value := range explained.Values {
		id, _ := value.Value.(string)
		if id == "" || !slices.Equal(value.Key, []string{"continuation", "summary_directive"}) {
			continue
		}
		if _, problem, try := v.look(s).forHandoff(id); problem != "" {
			l.about = Finding{Path: value.Path}
			l.warnf(CodeContinuation, value.Line, try, "summary_directive: %s", problem)
		}
	}
}

// hooksFiles looks at the signatures of the files with hooks, without which no
// thread starts.
func (v *Validator) hooksFiles(l *list) {
	hooks, _, err := v.Config.Hooks()
	if err != nil {
		return // told above
	}
	for _, file := range hooks.Files {
		l.about = Finding{Path: file.Path}
		v.signature(l, 1, file)
	}
}

// settingsHooks looks at what the hooks of settings files do.
func (v *Validator) settingsHooks(l *list, s shared) {
	w := v.look(s)
	for _, h := range s.hooks.All() {
		one := &list{about: Finding{Path: h.Path}}
		checkActionItems(one, w, h)
		checkHookData(one, h, told{names: h.Data(), inputs: anyInput}, func(k told, _ []string) string { return k.list() })
		l.found = append(l.found, one.found...)
	}
}

// anyInput is true: the hooks of settings are for every directive, whatever inputs
// it declares.
func anyInput(string) bool { return true }

// settings adds what reading some settings said.
func (l *list) settings(warnings []string, err error) {
	for _, text := range warnings {
		path, line, message := place(text)
		l.about = Finding{Path: path}
		l.warnf(CodeSettingsNoUse, line, "", "%s", message)
	}
	if err == nil {
		return
	}
	l.about = Finding{}
	if e, ok := errors.AsType[*config.Error](err); ok {
		l.about.Path = e.Path
		l.errorf(CodeSettings, e.Line, "", "%s", e.Reason)
	} else if e, ok := errors.AsType[*hook.Error](err); ok {
		l.about.Path = e.Path
		l.errorf(CodeSettings, e.Line, "", "hook %q: %s", e.Hook, e.Reason)
	} else {
		var line int
		var message string
		l.about.Path, line, message = place(err.Error())
		l.errorf(CodeSettings, line, "", "%s", message)
	}
}

// placed is a message that begins with file and line, or with a file.
var placed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^(.+?\.ya?ml):(?:(\d+):)? (.*)$`) })

// place takes a warning apart.
func place(text string) (path string, line int, message string) {
	m := placed().FindStringSubmatch(text)
	if m == nil {
		return "", 0, text
	}
	line, _ = strconv.Atoi(m[2]) // empty: the file as a whole
	return m[1], line, m[3]
}

// settingsFile looks at one file by itself: some that may stand in the folder of
// the settings are read by nobody here.
func settingsFile(e resolve.Entry) []Finding {
	l := &list{about: Finding{Space: e.Space, Path: e.Path}}
	content, err := regular.ReadFollowed(e.Path, parse.MaxBytes)
	if err != nil {
		l.errorf(CodeUnreadable, 0, "", "%v", err)
		return l.found
	}
	if err := action.CheckSettings(e.Path, content); err != nil {
		line := 0
		if m := yamlLine().FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1]) // digits
		}
		l.errorf(CodeSettings, line, "", "%s", strings.TrimPrefix(err.Error(), e.Path+": "))
	}
	return l.found
}

// yamlLine is how the YAML library says where something is wrong.
var yamlLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bline (\d+)`) })
