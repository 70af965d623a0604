package mcpclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// declaration is the configuration of a server, as items and other programs write
// it.
type declaration struct {
	Transport string            `json:"transport"`
	Type      string            `json:"type"` // transport, as editors call it
	Command   string            `json:"command"`
	Args      []string          `json:"args"`
	Env       map[string]string `json:"env"`
	CWD       string            `json:"cwd"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	Timeout   float64           `json:"timeout"` // seconds
}

// transports are the names by which transports are known.
var transports = map[string]Transport{
	"stdio": Stdio, "http": HTTP, "streamable-http": HTTP, "streamable_http": HTTP, "streamableHttp": HTTP,
}

var errSSE = errors.New("it is reached over SSE alone, which servers have left for Streamable HTTP; this version speaks stdio and http")

// Declared reads the configuration of a server with the values of its variables in
// their places. Environ is the environment of a command, to which the server's own
// entries are added; dir is its working folder where it names none.
func Declared(id string, config map[string]any, environ []string, dir string) (Server, error) {
	raw, err := json.Marshal(config)
	if err != nil {
		return Server{}, err
	}
	var d declaration
	if err := json.Unmarshal(raw, &d); err != nil {
		return Server{}, fmt.Errorf("its config: %w", err)
	}
	s := Server{
		ID: id, Command: d.Command, Args: d.Args, Dir: dir, URL: d.URL, Headers: d.Headers,
		Env: slices.Clone(environ), Timeout: time.Duration(d.Timeout * float64(time.Second)),
	}
	if d.CWD != "" {
		s.Dir = d.CWD
	}
	for _, name := range slices.Sorted(maps.Keys(d.Env)) {
		s.Env = append(s.Env, name+"="+d.Env[name])
	}
	if s.Transport, err = d.transport(); err != nil {
		return Server{}, err
	}
	return s, s.Check()
}

// transport is what the configuration says, or what follows from the rest of it.
func (d declaration) transport() (Transport, error) {
	named := d.Transport
	if named == "" {
		named = d.Type
	}
	switch {
	case named == "sse":
		return "", errSSE
	case named == "" && d.URL != "":
		return HTTP, nil
	case named == "":
		return Stdio, nil
	}
	if t, known := transports[named]; known {
		return t, nil
	}
	return Transport(named), nil // which Check refuses
}
