package chain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// spec is what an element says about how it is run, decoded.
type spec struct {
	Env     envSpec        `json:"env_config"`
	Anchor  *anchorSpec    `json:"anchor"`
	Verify  *verifySpec    `json:"verify_deps"`
	Config  map[string]any `json:"-"`
	Resolve *resolveSpec   `json:"config_resolve"`
	Warm    bool           `json:"warm"`
	// Shell is a key of the tool's own configuration, or a parameter of it, that is a
	// command line: it is filled before it is put in, its values quoted for the shell.
	Shell string `json:"shell"`
	// Runs are the extensions of the programs that a runtime runs, which are the files of
	// its tools. Empty: it says nothing of them.
	Runs []string `json:"runs"`
	// Defaults are the values of names that nothing else gives.
	Defaults map[string]any `json:"defaults"`
}

// envSpec is env_config.
type envSpec struct {
	Interpreter *interpreterSpec `json:"interpreter"`
	Env         names            `json:"env"`
}

// names are variables with their values as written, or without any: those are taken
// as they are in the environment.
type names struct {
	values map[string]string
	passed []string
}

// UnmarshalJSON reads a mapping of names to values, or a list of names.
func (n *names) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		return json.Unmarshal(raw, &n.passed)
	}
	var values map[string]any
	if err := json.Unmarshal(raw, &values); err != nil {
		return err
	}
	n.values = make(map[string]string, len(values))
	for name, value := range values {
		n.values[name] = TextOf(value)
	}
	return nil
}

// interpreterSpec is env_config.interpreter.
type interpreterSpec struct {
	Type        string   `json:"type"`
	Binary      string   `json:"binary"`
	Candidates  []string `json:"candidates"`
	SearchPaths []string `json:"search_paths"`
	SearchRoots []string `json:"search_roots"`
	VenvPath    string   `json:"venv_path"` // of an older type
	Var         string   `json:"var"`
	Fallback    string   `json:"fallback"`
	ResolveCmd  []string `json:"resolve_cmd"`
	// Install says, for a person, what to install where there is none.
	Install string `json:"install"`
	// Needs says what files of some extensions need, by extension.
	Needs map[string]needSpec `json:"needs"`
}

// needSpec is a program, or another one from some version on.
type needSpec struct {
	Binary  string `json:"binary"`
	Version string `json:"version"` // of the interpreter, from which on it needs no Binary
	Install string `json:"install"`
}

// anchorSpec is anchor.
type anchorSpec struct {
	Enabled    *bool               `json:"enabled"`
	Mode       string              `json:"mode"`
	MarkersAny []string            `json:"markers_any"`
	Root       string              `json:"root"`
	Lib        string              `json:"lib"`
	Cwd        string              `json:"cwd"`
	EnvPaths   map[string]pathSpec `json:"env_paths"`
	// Unverified are folders above the tool from which programs load code that nobody
	// has signed.
	Unverified []string `json:"unverified"`
}

// pathSpec is what is put before and behind a list of folders in a variable.
type pathSpec struct {
	Prepend []string `json:"prepend"`
	Append  []string `json:"append"`
}

// verifySpec is verify_deps.
type verifySpec struct {
	Enabled     bool     `json:"enabled"`
	Scope       string   `json:"scope"`
	Recursive   *bool    `json:"recursive"`
	Extensions  []string `json:"extensions"`
	ExcludeDirs []string `json:"exclude_dirs"`
	// Loader says that the runtime refuses by itself to load what is not verified, so
	// that files without a good signature are left out, and do not stop the tool.
	Loader bool `json:"loader"`
}

// resolveSpec is config_resolve.
type resolveSpec struct {
	Path string `json:"path"`
	Mode string `json:"mode"`
}

// The modes of config_resolve.
const (
	deepMerge  = "deep_merge"
	firstMatch = "first_match"
)

// specOf decodes what an element says about how it is run.
func (b *Builder) specOf(e Element) (spec, error) {
	return b.specs.get(e.Ext+e.Hash, func() (s spec, err error) {
		keys := map[string]any{}
		for _, key := range []string{"env_config", "anchor", "verify_deps", "config_resolve", "warm", "shell", "defaults", "runs"} {
			if value := e.Doc.Metadata[key]; value != nil {
				keys[key] = value
			}
		}
		config, isMap := e.Doc.Metadata["config"].(map[string]any)
		if s.Config = config; !isMap && e.Doc.Metadata["config"] != nil {
			return s, tool.Faultf(tool.CodeInvalidItem, "%s cannot be used: its config is no mapping", e.ID).With("path", e.Path)
		}
		raw, err := json.Marshal(keys)
		if err == nil {
			err = json.Unmarshal(raw, &s)
		}
		if err != nil {
			return s, tool.Faultf(tool.CodeInvalidItem, "%s cannot be used: %w", e.ID, misfit(err)).With("path", e.Path)
		}
		return s, nil
	})
}

// misfit says which key has the wrong type.
func misfit(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) || wrong.Field == "" {
		return err
	}
	return fmt.Errorf("%s is a %s, which does not fit there", wrong.Field, wrong.Value)
}

// merge puts the values of over into a copy of under: mappings merge, everything
// else is replaced.
func merge(under, over map[string]any) map[string]any {
	merged := maps.Clone(under)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range over {
		inner, isMap := value.(map[string]any)
		below, wasMap := merged[key].(map[string]any)
		if isMap && wasMap {
			value = merge(below, inner)
		}
		merged[key] = value
	}
	return merged
}
