package foreign

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// rewriter puts the values of one server into our words.
type rewriter struct {
	server    string
	variables map[string]bool
	notes     []string
}

func (r *rewriter) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// reference is a ${…} of another program.
var reference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([^{}]*)\}`) })

// text puts references to variables into our form: ${env:NAME} and ${input:id} of VS
// Code and Cursor, ${NAME:-default} of Claude Code, and folders that they know.
func (r *rewriter) text(text string) string {
	return reference().ReplaceAllStringFunc(text, func(found string) string {
		name, otherwise, hasDefault := strings.Cut(found[2:len(found)-1], ":-")
		kind, of, prefixed := strings.Cut(name, ":")
		switch {
		case name == "workspaceFolder", name == "cwd", name == "workspaceRoot":
			return "{project_path}"
		case name == "userHome":
			return "${HOME}"
		case name == "pathSeparator", name == "/":
			return "/"
		case prefixed && kind == "env":
			return r.variable(of)
		case prefixed && kind == "input":
			return r.variable(r.server + "_" + of)
		case prefixed:
			r.note("%s means nothing here", found)
			return found
		case hasDefault:
			return "${" + variableName(name) + ":-" + otherwise + "}"
		}
		return r.variable(name)
	})
}

// variable is a reference to a variable that has to be set.
func (r *rewriter) variable(name string) string {
	name = variableName(name)
	if name != "HOME" && name != "PATH" {
		r.variables[name] = true
	}
	return "${" + name + "}"
}

// variableName is a name as our references have it: upper case, digits, underscores.
func variableName(name string) string {
	plain := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z':
			return c - 'a' + 'A'
		case 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			return c
		}
		return '_'
	}, name)
	if plain == "" || plain[0] >= '0' && plain[0] <= '9' {
		plain = "_" + plain
	}
	return plain
}

// secretWords are parts of names whose values are secrets.
var secretWords = []string{"key", "token", "secret", "password", "passwd", "credential", "auth", "cookie", "bearer", "private"}

func isSecretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
}

// secretBeginnings are how the keys of well-known services begin.
var secretBeginnings = []string{"sk-", "sk_", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "AIza", "hf_", "tvly-", "BSA"}

func isSecretValue(value string) bool {
	return len(value) >= 16 && slices.ContainsFunc(secretBeginnings, func(begin string) bool { return strings.HasPrefix(value, begin) })
}

// hide puts a reference in the place of a secret. A value that refers to a variable
// already stays.
func (r *rewriter) hide(variable, value string) string {
	if value == "" || strings.Contains(value, "${") {
		return r.text(value)
	}
	return r.variable(variable)
}

// values are entries of an environment, or headers.
func (r *rewriter) values(entries map[string]any, of string) map[string]string {
	var rewritten map[string]string
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		value := asText(entries[name])
		if rewritten == nil {
			rewritten = make(map[string]string)
		}
		variable := name
		if of == "headers" {
			variable = r.server + "_" + name
		}
		scheme, credential, twoWords := strings.Cut(value, " ")
		switch {
		case !isSecretName(name) && !isSecretValue(value):
			rewritten[name] = r.text(value)
		case of == "headers" && twoWords && (strings.EqualFold(scheme, "bearer") || strings.EqualFold(scheme, "basic") || strings.EqualFold(scheme, "token")):
			rewritten[name] = scheme + " " + r.hide(variable, credential)
		default:
			rewritten[name] = r.hide(variable, value)
		}
	}
	return rewritten
}

// args are the arguments of a command: --api-key VALUE, --api-key=VALUE, NAME=VALUE and
// values that look like keys are secrets.
func (r *rewriter) args(args []any) []string {
	var rewritten []string
	secretFollows := ""
	for _, arg := range args {
		text := asText(arg)
		name, value, assigned := strings.Cut(text, "=")
		plain := strings.TrimLeft(name, "-")
		switch {
		case secretFollows != "":
			text = r.hide(r.server+"_"+secretFollows, text)
			secretFollows = ""
		case assigned && isSecretName(plain):
			text = name + "=" + r.hide(argumentVariable(r.server, name), value)
		case strings.HasPrefix(text, "--") && isSecretName(plain) && !assigned:
			secretFollows = plain
		case isSecretValue(text):
			text = r.hide(r.server+"_secret", text)
		default:
			text = r.text(text)
		}
		rewritten = append(rewritten, text)
	}
	return rewritten
}

// argumentVariable is the variable for the value of an argument: its own name where it
// is one of the environment's (docker's -e NAME=VALUE), else one of the server's.
func argumentVariable(server, name string) string {
	if strings.HasPrefix(name, "-") {
		return server + "_" + strings.TrimLeft(name, "-")
	}
	return name
}

// url hides keys in the query of an address, and a password.
func (r *rewriter) url(address string) string {
	if address == "" {
		return ""
	}
	base, query, found := strings.Cut(address, "?")
	if u, err := url.Parse(base); err == nil && u.User != nil {
		r.note("the password in its url was left out: put it into headers")
		u.User = nil
		base = u.String()
	}
	if !found {
		return r.text(base)
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		if isSecretName(name) || isSecretValue(value) {
			parts[i] = name + "=" + r.hide(r.server+"_"+name, value)
			continue
		}
		parts[i] = r.text(part)
	}
	return r.text(base) + "?" + strings.Join(parts, "&")
}
