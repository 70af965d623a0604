// Package storeurl reads the address of a thread store. An address is a secret: it can hold
// a password. Nothing here shows one, and no error quotes what was given.
package storeurl

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Local is the word for the store of this machine, SQLite in the project's state.
const Local = "local"

// maxLength bounds an address in bytes.
const maxLength = 4096

// Valid says what an address looks like.
const Valid = "a URL such as postgres://rye@db.example/rye?sslmode=verify-full, or " + Local + " for this machine's own"

// Error says what is wrong with an address, without any of it.
type Error struct {
	Reason string
}

func (e *Error) Error() string { return "the address of a store " + e.Reason }

// Try is what a person can do.
func (e *Error) Try() string { return "give " + Valid }

// URL is the address of a store; the zero value is the store of this machine. However it
// is printed, its secrets are not: [URL.Secret] is the one way to them.
type URL struct {
	parsed *url.URL
}

// masked stands for a secret.
const masked = "********"

// Parse reads an address. An error is an [*Error].
func Parse(text string) (URL, error) {
	bad := func(reason string, args ...any) (URL, error) {
		return URL{}, &Error{Reason: fmt.Sprintf(reason, args...)}
	}
	scheme, rest, isURL := strings.Cut(text, "://")
	switch scheme = strings.ToLower(scheme); {
	case text == Local:
		return URL{}, nil
	case text == "":
		return bad("is empty")
	case len(text) > maxLength:
		return bad("is longer than %d bytes", maxLength)
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar }):
		return bad("has a space, a line break or another character that no URL has; write it as %%20 and the like")
	case !isURL:
		return bad("is no URL")
	case strings.HasPrefix(scheme, "langgraph"):
		return bad("cannot be of LangGraph: its threads can be mirrored there, beside a store")
	case scheme != "postgres" && scheme != "postgresql":
		return bad("has a scheme that is not known")
	}
	u, reason := parse(rest)
	if reason == "" {
		reason = check(u)
	}
	if reason == "" && hasSecret(u, masked) {
		reason = "has " + masked + " in the place of a password: that is how addresses are shown, leave it out"
	}
	if reason != "" {
		return bad("%s", reason)
	}
	return URL{parsed: u}, nil
}

// hasSecret reports whether one of the secrets of an address is a text.
func hasSecret(u *url.URL, text string) bool {
	password, _ := u.User.Password()
	return password == text || slices.ContainsFunc(secretParameters, func(name string) bool { return u.Query().Get(name) == text })
}

// parse reads what follows the scheme. Several hosts with a port each, which libpq takes,
// are nothing that net/url reads.
func parse(rest string) (u *url.URL, reason string) {
	end := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		end = i
	}
	user, hosts := "", rest[:end]
	if i := strings.LastIndexByte(hosts, '@'); i >= 0 {
		user, hosts = hosts[:i+1], hosts[i+1:]
	}
	if strings.ContainsRune(rest[end:], '#') {
		return nil, "has a #; in a password write it as %23"
	}
	u, err := url.Parse("postgres://" + user + "host" + rest[end:])
	if err != nil { // which quotes the password
		return nil, "cannot be read; in a password write / as %2F, @ as %40 and % as %25"
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, "has parameters that cannot be read"
	}
	if strings.Contains(hosts, "%") { // a socket, as libpq writes it
		if hosts, err = url.PathUnescape(hosts); err != nil || !filepath.IsAbs(hosts) || query.Has("host") {
			return nil, "names a host that cannot be read; a socket is ?host=/run/postgresql"
		}
		query.Set("host", hosts)
		u.RawQuery, hosts = query.Encode(), ""
	}
	if u.Host = hosts; hosts == "" && u.Path == "" {
		u.Path = "/" // without either it would be written without //
	}
	return u, ""
}

// files are the parameters that name a file.
var files = []string{"passfile", "servicefile", "sslcert", "sslkey", "sslrootcert", "sslcrl"}

// check says what is wrong with an address that can be read; empty when nothing is.
func check(u *url.URL) (reason string) {
	for host := range strings.SplitSeq(u.Host, ",") {
		if why := checkHost(host); why != "" {
			return why
		}
	}
	query := u.Query()
	for name, values := range query {
		switch {
		case len(values) > 1:
			return fmt.Sprintf("has the parameter %s twice", shownName(name))
		case slices.Contains(files, name) && values[0] != "" && !filepath.IsAbs(values[0]) && values[0] != "system":
			return fmt.Sprintf("names a file in %s that is not a whole path: it is read from whatever folder a thread runs in", name)
		}
	}
	if mode := query.Get("sslmode"); mode != "" && !slices.Contains(sslModes, mode) {
		return "has an sslmode that is not known; there are " + strings.Join(sslModes, ", ")
	}
	return ""
}

// sslModes are those of libpq.
// Source: https://www.postgresql.org/docs/15/libpq-connect.html, sslmode.
var sslModes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

const maxShown = 40

// shownName is the name of a parameter, where it cannot be a secret in the wrong place.
func shownName(name string) string {
	if len(name) > maxShown || strings.ContainsFunc(name, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		return "of one name"
	}
	return name
}

const maxPort = 1<<16 - 1

func checkHost(host string) (reason string) {
	name, port := host, ""
	switch i := strings.LastIndexByte(host, ':'); {
	case strings.HasPrefix(host, "["): // IPv6
		end := strings.IndexByte(host, ']')
		if end < 0 || len(host) > end+1 && host[end+1] != ':' {
			return "has an IPv6 address that cannot be read; write it as [::1]:5432"
		}
		name, port = host[1:end], strings.TrimPrefix(host[end+1:], ":")
	case i >= 0:
		name, port = host[:i], host[i+1:]
	}
	if strings.ContainsAny(name, "\\<>\"{}|^`") || !strings.HasPrefix(host, "[") && strings.ContainsAny(name, ":[]") {
		return "names a host that cannot be read"
	}
	n := 0
	for _, r := range port {
		if r < '0' || r > '9' || n > maxPort {
			return "has a port that is no number from 1 to 65535"
		}
		n = n*10 + int(r-'0')
	}
	if port != "" && (n == 0 || n > maxPort) {
		return "has a port that is no number from 1 to 65535"
	}
	return ""
}

// IsLocal reports whether this is the store of this machine.
func (u URL) IsLocal() bool { return u.parsed == nil }

// Secret is the whole address. It goes to the client of the database and, through a pipe,
// to processes of this program, and nowhere else.
func (u URL) Secret() string {
	if u.parsed == nil {
		return Local
	}
	return u.parsed.String()
}

// secretParameters are those whose value is a secret.
var secretParameters = []string{"password", "sslpassword"}

// String is the address without its secrets.
func (u URL) String() string {
	if u.parsed == nil {
		return Local
	}
	shown := *u.parsed
	if _, has := shown.User.Password(); has {
		shown.User = url.UserPassword(shown.User.Username(), masked)
	}
	query := shown.Query()
	for _, name := range secretParameters {
		if query.Has(name) {
			query.Set(name, masked)
			shown.RawQuery = query.Encode()
		}
	}
	return strings.ReplaceAll(shown.String(), url.QueryEscape(masked), masked)
}

// SamePlace reports whether two addresses are of one database, for one user, whatever their
// secrets are.
func (u URL) SamePlace(other URL) bool { return u.withoutSecrets() == other.withoutSecrets() }

func (u URL) withoutSecrets() string {
	if u.parsed == nil {
		return Local
	}
	bare, query := *u.parsed, u.parsed.Query()
	if bare.User != nil {
		bare.User = url.User(bare.User.Username())
	}
	for _, name := range secretParameters {
		query.Del(name)
	}
	bare.RawQuery = query.Encode()
	return bare.String()
}

// GoString is String: %#v shows no more.
func (u URL) GoString() string { return u.String() }

// MarshalText is String: nothing is written anywhere that could be read there.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// HasPassword reports whether the address has a password in it.
func (u URL) HasPassword() bool {
	if u.parsed == nil {
		return false
	}
	_, has := u.parsed.User.Password()
	query := u.parsed.Query()
	return has || slices.ContainsFunc(secretParameters, query.Has)
}

// ErrPassword says that an address stands where everybody can read its password.
var ErrPassword = errors.New("a command line can be read by everybody on this machine, and the address has a password in it")

// WithPassword is the address with a password.
func (u URL) WithPassword(password string) URL {
	if u.parsed == nil {
		return u
	}
	with, query := *u.parsed, u.parsed.Query()
	if with.User != nil {
		with.User = url.User(with.User.Username())
	}
	query.Set("password", password)
	with.RawQuery = query.Encode()
	return URL{parsed: &with}
}

// Masked replaces whatever of a text is a secret of the address: a client of the database
// can quote it.
func (u URL) Masked(text string) string {
	if u.parsed == nil {
		return text
	}
	text = strings.ReplaceAll(text, u.Secret(), u.String())
	var secrets []string
	if password, has := u.parsed.User.Password(); has {
		secrets = append(secrets, password)
	}
	query := u.parsed.Query()
	for _, name := range secretParameters {
		secrets = append(secrets, query.Get(name))
	}
	for _, secret := range secrets {
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			if len(form) >= leastSecret {
				text = strings.ReplaceAll(text, form, masked)
			}
		}
	}
	return text
}

// leastSecret is the length from which a secret is looked for in a text: a shorter one is
// in every text.
const leastSecret = 4
