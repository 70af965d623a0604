package config

import (
	"net/url"
	"slices"
	"strings"
)

// Mirror is config/agent/mirror.yaml: the server of LangGraph that has a copy of each
// thread. No project has a say in it: what is said in threads goes there.
type Mirror struct {
	URL   string // langgraph+http://… or langgraph+https://…; empty: there is none
	Graph string // that threads belong to there
	Node  string // of the graph, as which states are written; empty: the server chooses
	// Key describes, as a provider, how the key of the server is had.
	Key Provider
}

// MirrorFile is the file of the user's settings, below .ai/config. Without it there is no
// mirror.
const MirrorFile = "agent/mirror.yaml"

// mirrorKey is the one key of the file.
const mirrorKey = "mirror"

// mirrorName stands for the server where a provider has its name; no provider has it.
const mirrorName = "server of mirror.yaml"

// mirrorSettings is the file as it is decoded.
type mirrorSettings struct {
	Mirror struct {
		URL            string   `yaml:"url"`
		Graph          string   `yaml:"graph"`
		Node           string   `yaml:"node"`
		APIKeyEnv      string   `yaml:"api_key_env"`
		APIKeyCommand  []string `yaml:"api_key_command"`
		APIKeyKeychain string   `yaml:"api_key_keychain"`
	} `yaml:"mirror"`
}

// MirrorOf reads mirror.yaml.
func MirrorOf(sn *Snapshot) (Mirror, []string, error) { return sn.mirror() }

func readMirror(sn *Snapshot) (Mirror, []string, error) {
	s, err := sn.load(mirrorKind)
	if err != nil {
		return Mirror{}, s.warnings, err
	}
	return valuesOf(sn, mirrorKind, s, func() (Mirror, []string, error) {
		m, err := s.mirror()
		return m, s.warnings, err
	})
}

// mirror is what the layers say together.
func (s *settings) mirror() (Mirror, error) {
	var said mirrorSettings
	if err := s.decode(&said); err != nil {
		return Mirror{}, err
	}
	in := said.Mirror
	if in.URL != "" && !isMirror(in.URL) {
		at := s.origin([]string{mirrorKey, "url"}, nil)
		return Mirror{}, &Error{
			Path: at.Path, Line: at.Line, Reason: "mirror.url: want a URL that begins with langgraph+http:// or langgraph+https://, without a user and a query",
		}
	}
	if len(in.APIKeyCommand) > 0 && !isProgram(in.APIKeyCommand[0]) {
		return Mirror{}, s.errorAt([]string{mirrorKey, "api_key_command"}, "want the name of a program or its whole path, and its arguments, each a word of the list")
	}
	return Mirror{URL: in.URL, Graph: in.Graph, Node: in.Node, Key: Provider{
		Name: mirrorName, File: MirrorFile, APIKeyEnv: in.APIKeyEnv, APIKeyCommand: slices.Clone(in.APIKeyCommand), APIKeyKeychain: in.APIKeyKeychain,
	}}, nil
}

// isMirror reports whether a text is the URL of a server of LangGraph, and has nothing in
// it that belongs elsewhere, as a key.
func isMirror(text string) bool {
	rest, ours := strings.CutPrefix(text, "langgraph+")
	u, err := url.Parse(rest)
	return ours && err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil &&
		u.RawQuery == "" && !u.ForceQuery && u.Fragment == ""
}

// canonicalMirror brings "mirror: URL" into the form in which all keys have names.
func canonicalMirror(l *layer) error {
	switch said := l.values[mirrorKey].(type) {
	case nil, map[string]any:
		return nil
	case string:
		l.values[mirrorKey] = map[string]any{"url": said}
		l.spellings = func([]string) [][]string { return [][]string{{mirrorKey}} }
		return nil
	}
	return l.errorAt([]string{mirrorKey}, "want a URL, or a mapping with url, graph and node")
}
