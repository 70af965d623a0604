package process

import (
	"slices"
	"strings"
)

// ToolEnv returns the environment of a tool: what a program needs to find its
// files and speak the user's language, never a provider's key. The entries of
// environ and extra are KEY=value; extra comes last and so wins.
func ToolEnv(environ []string, extra ...string) []string {
	return append(pick(environ, toolVariable), extra...)
}

func toolVariable(name string) bool {
	switch name {
	case "PATH", "HOME", "LANG", "TMPDIR", "TERM", "USER":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// ThreadEnv divides what a thread process gets into its environment, which is an
// allow-list, and its secrets: the variables named by keys, which are those of
// the model providers. A variable that every program needs is no secret, whatever
// a provider calls it. The address of a store goes another way. The entries of environ are KEY=value.
func ThreadEnv(environ []string, keys ...string) (env, secrets []string) {
	secret := func(name string) bool { return slices.Contains(keys, name) && !neededVariable(name) }
	env = pick(environ, func(name string) bool { return threadVariable(name) && !secret(name) })
	return env, pick(environ, secret)
}

func threadVariable(name string) bool {
	return name != "RYE_STORE" && (neededVariable(name) ||
		strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "RYE_"))
}

func neededVariable(name string) bool {
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR",
		"USER_SPACE",                    // where the user's space is
		"SSL_CERT_FILE", "SSL_CERT_DIR", // which servers to trust
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"GOCOVERDIR": // where a binary built for coverage writes
		return true
	}
	return false
}

// pick returns the entries of environ whose name passes.
func pick(environ []string, pass func(name string) bool) []string {
	picked := []string{}
	for _, entry := range environ {
		if name, _, ok := strings.Cut(entry, "="); ok && pass(name) {
			picked = append(picked, entry)
		}
	}
	return picked
}
