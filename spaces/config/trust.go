package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// guardSecrets refuses settings in which the project's file decides where a
// secret of the user's is sent: a key from the environment, or the headers of
// the user's own file. A project may be somebody else's work, and threads may
// write its files.
//
// The project may choose another path on the same host, a host of this machine,
// and one that the user trusts.
func (l *Loader) guardSecrets(p *Provider, s *settings) error {
	top := len(s.layers) - 1
	if s.layers[top].space != item.Project || p.API == APIScripted { // a script is answered from on this machine
		return nil
	}
	var own Provider // without the project's file
	lower := settings{layers: s.layers[:top]}
	if err := lower.decode(&own); err != nil {
		return err
	}
	secret := fmt.Sprintf("the key in %s", p.APIKeyEnv)
	if p.APIKeyEnv == "" {
		if len(own.Headers) == 0 {
			return nil
		}
		secret = "your headers"
	}
	if p.BaseURLEnv != own.BaseURLEnv {
		return s.errorAt([]string{"base_url_env"},
			"a project may not decide where %s goes by a variable; put this into your user space (~/.ai or $USER_SPACE/.ai)", secret)
	}
	trusted, err := l.trusts(p.BaseURL, own.BaseURL)
	if err != nil || trusted {
		return err
	}
	return s.errorAt([]string{"base_url"}, "a project may not decide that %s goes to %s; if you trust that host, "+
		"list it under provider.trusted_hosts in config/agent/agent.yaml of your user space (~/.ai or $USER_SPACE/.ai), and use https",
		secret, hostOf(p.BaseURL))
}

// trusts reports whether an address of the project's may be given what belongs
// to the user; own is the provider's address without the project.
func (l *Loader) trusts(address, own string) (bool, error) {
	if address == own {
		return true, nil
	}
	u, o := parsed(address), parsed(own)
	if u.Host == "" {
		return false, nil
	}
	if u.Scheme == o.Scheme && strings.EqualFold(u.Host, o.Host) {
		return true, nil
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return true, nil
	}
	agent, _, err := l.Agent()
	if err != nil {
		return false, err
	}
	return u.Scheme == "https" && slices.ContainsFunc(agent.Provider.TrustedHosts, func(host string) bool {
		return strings.EqualFold(host, u.Host) || strings.EqualFold(host, u.Hostname())
	}), nil
}

// hostOf is the host of an address for a message, without what else an address
// may hold, such as a password.
func hostOf(address string) string {
	if host := parsed(address).Host; host != "" {
		return host
	}
	return "an address that cannot be read"
}

// parsed takes an address apart; one that cannot be read has no host.
func parsed(address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil {
		return &url.URL{}
	}
	return u
}

// ofTheUser are the settings in agent.yaml by which the user trusts somebody.
var ofTheUser = [][]string{{"provider", "trusted_hosts"}, {"integrity"}, {"risk"}}

// dropProjectTrust leaves out what a project would trust on behalf of the user.
func (s *settings) dropProjectTrust() {
	for _, l := range s.layers {
		if l.space != item.Project {
			continue
		}
		for _, at := range ofTheUser {
			if remove(l.values, at) {
				s.warnings = append(s.warnings, l.warning(at, "read from the user space only"))
			}
		}
	}
}

// dropProjectLenience leaves out that a project lets pass what nobody signed.
func (s *settings) dropProjectLenience() {
	at := []string{"transcript_integrity"}
	for _, l := range s.layers {
		if l.space == item.Project && l.values[at[0]] == TranscriptLenient {
			remove(l.values, at)
			s.warnings = append(s.warnings, l.warning(at, "lenient is read from the user space only"))
		}
	}
}

// dropProjectBounds leaves out what a project says about the bounds that its user
// has set on calls and days.
func (s *settings) dropProjectBounds() {
	for _, l := range s.layers {
		for _, at := range [][]string{{"limits", "max_override"}, {"limits", "daily_spend"}} {
			if l.space == item.Project && remove(l.values, at) {
				s.warnings = append(s.warnings, l.warning(at, "read from the user space only"))
			}
		}
	}
}

// remove deletes the value at a path of keys and reports whether there was one.
func remove(values map[string]any, at []string) bool {
	last := len(at) - 1
	for _, key := range at[:last] {
		values, _ = values[key].(map[string]any) // of nothing, nothing is removed
	}
	_, given := values[at[last]]
	delete(values, at[last])
	return given
}
