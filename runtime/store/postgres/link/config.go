package link

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Options of a connection to a server.
type Options struct {
	// URL is postgres://user:password@host:port/database?sslmode=…, with the parameters
	// that libpq has. It is a secret.
	URL string
	// Now is the clock of changes that are not given a time; nil means that of the server.
	Now func() time.Time
	// Application is what the server's lists call this process; empty is "rye-mcp".
	Application string
	// Timeout is how long a call may take, waits for others included; 0 is [DefaultTimeout].
	Timeout time.Duration
	// Poll is how long a commit can go unnoticed of which no hint was sent; 0 is a second.
	Poll time.Duration
	// Connections is how many a pool may have; 0 is 4.
	Connections int
	// Alone is for a process that does one thing after the other: each commit sends its own
	// hint, in the same request, where else a connection beside sends those of many.
	Alone bool
	// Patient calls wait, for the time that they have, for a server that only reads or has a full
	// disk, too, as for one that is away: a running thread ends where one fails.
	Patient bool
	// Migrations are in place of those of the program: a test has those of a newer binary. Nil:
	// those.
	Migrations fs.FS
	// Moving is for a caller that moves the threads of a project here: where that was begun
	// and has not ended, the project is refused to all others.
	Moving bool
	// Begun is a link that was begun before, which the first project of its name gets; nil: none.
	Begun *Link
}

// WithDefaults is the options with what is left open.
func (o Options) WithDefaults() Options {
	if o.Application == "" {
		o.Application = "rye-mcp"
	}
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return o
}

// DefaultTimeout of a call. Locks are held for milliseconds.
const DefaultTimeout = 10 * time.Second

// connectTimeout is how long a connection may take to be made, where the URL says nothing.
const connectTimeout = 5 * time.Second

// ErrBadURL says that a store's URL is not one of PostgreSQL.
var ErrBadURL = errors.New("not a URL of PostgreSQL (postgres://user@host:5432/database)")

// Config reads the URL. No error has a part of it that may be a password.
func (o Options) Config() (*pgxpool.Config, error) {
	scheme, _, _ := strings.Cut(o.URL, "://")
	if scheme != "postgres" && scheme != "postgresql" {
		return nil, ErrBadURL
	}
	parsed, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be read as a URL; a password with signs in it is written with %%, such as %%40 for @", ErrBadURL)
	}
	o = o.WithDefaults()
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrBadURL, masked(err, parsed))
	}
	if err := unheard(config.ConnConfig.RuntimeParams); err != nil {
		return nil, err
	}
	o.settle(config, parsed.Query())
	return config, nil
}

// Parameters of libpq that its Go client does not know, and would send to the server as
// settings. Without the harmless ones a connection is the same.
// Source: https://www.postgresql.org/docs/17/libpq-connect.html, section 32.1.2.
var (
	harmless = []string{"fallback_application_name", "gssencmode", "keepalives", "load_balance_hosts", "sslcompression"}
	missing  = []string{"gssdelegation", "gsslib", "hostaddr", "requirepeer", "ssl_max_protocol_version", "ssl_min_protocol_version", "sslcrl", "sslcrldir"}
)

// unheard takes away what changes nothing, and refuses what would not be heeded.
func unheard(set map[string]string) error {
	for _, name := range missing {
		if set[name] != "" {
			return fmt.Errorf("%w: libpq's parameter %s is not supported", ErrBadURL, name)
		}
	}
	if set["gssencmode"] == "require" {
		return fmt.Errorf("%w: gssencmode=require is not supported: connections are encrypted by TLS", ErrBadURL)
	}
	for _, name := range harmless {
		delete(set, name)
	}
	return nil
}

// settle puts into a configuration what the URL leaves open, and what must be so.
func (o Options) settle(config *pgxpool.Config, given url.Values) {
	config.MaxConns = 4
	if o.Connections > 0 {
		config.MaxConns = int32(min(o.Connections, 1000)) //nolint:gosec // it is small
	}
	// Connections are what a server has least of.
	config.MaxConnIdleTime, config.HealthCheckPeriod = 30*time.Second, 15*time.Second
	config.PingTimeout = o.Timeout
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	set := config.ConnConfig.RuntimeParams
	orElse := func(name, value string) {
		if !given.Has(name) && set[name] == "" {
			set[name] = value
		}
	}
	orElse("application_name", o.Application)
	milliseconds := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	// A process that was suspended, or whose network is gone, must not keep its locks as
	// long as others may wait for them.
	orElse("idle_in_transaction_session_timeout", milliseconds(o.Timeout/2))
	orElse("statement_timeout", milliseconds(o.Timeout))
	orElse("tcp_user_timeout", milliseconds(o.Timeout))
	orElse("tcp_keepalives_idle", "10")
	orElse("tcp_keepalives_interval", "5")
	orElse("tcp_keepalives_count", "3")
	set["default_transaction_isolation"] = "read committed"
	set["jit"] = "off" // statements are short
	set["timezone"] = "UTC"
}

// masked is the reason why a URL cannot be used, without the URL and without passwords.
func masked(err error, parsed *url.URL) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner // those around it repeat the URL
	}
	text := err.Error()
	text = text[strings.LastIndex(text, "`: ")+1:] // "cannot parse `URL`: reason"
	text = strings.TrimPrefix(text, ": ")
	secrets := []string{parsed.Query().Get("password"), parsed.Query().Get("sslpassword")}
	if password, has := parsed.User.Password(); has {
		secrets = append(secrets, password, url.QueryEscape(password))
	}
	if strings.Contains(text, "://") {
		return "a parameter is wrong"
	}
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}
