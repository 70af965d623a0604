package postgres_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// Roles of the server with TLS, named after what pg_hba.conf asks of them.
const anyhow, onlyTLS, onlyPlain, certified = "anyhow", "onlytls", "onlyplain", "certified"

// encrypted is a server with TLS on the loopback.
type encrypted struct {
	cluster     *pgtest.Cluster
	database    string
	root, other *pgtest.Authority // that has signed the server's certificate, and another one
}

func newEncrypted(t *testing.T) *encrypted {
	t.Helper()
	e := &encrypted{root: pgtest.NewAuthority(t), other: pgtest.NewAuthority(t)}
	line := func(kind, role, how string) string { return kind + " all " + role + " 127.0.0.1/32 " + how }
	e.cluster = pgtest.Start(t, pgtest.Options{Network: &pgtest.Network{
		Server: e.root.Issue(t, pgtest.Certificate{Name: "server", Hosts: []string{"localhost"}}), Clients: e.root,
		Rules: []string{
			line("host", anyhow, "trust"), line("hostssl", onlyTLS, "trust"), line("hostnossl", onlyPlain, "trust"), line("hostssl", certified, "cert"),
		},
	}})
	admin := e.cluster.Database(t)
	e.database = admin[strings.LastIndex(admin, "/")+1 : strings.LastIndex(admin, "?")]
	for _, role := range []string{anyhow, onlyTLS, onlyPlain, certified} {
		e.cluster.Exec(t, "CREATE ROLE "+role+" LOGIN IN ROLE pg_monitor")
	}
	owner := connect(t, admin) // which makes the tables
	schema := open(t, owner, "shop").Schema()
	for _, role := range []string{anyhow, onlyTLS, onlyPlain, certified} {
		letWork(t, owner, schema, role)
	}
	return e
}

// url of the server for a role, with parameters as "name=value".
func (e *encrypted) url(role, host string, parameters ...string) string {
	values := url.Values{}
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		values.Set(name, value)
	}
	return fmt.Sprintf("postgres://%s@%s:%s/%s?%s", role, host, e.cluster.Port(), e.database, values.Encode())
}

// opened connects, and says whether the connection is encrypted.
func opened(t *testing.T, url string) (encrypted bool, err error) {
	t.Helper()
	server, err := postgres.Connect(t.Context(), postgres.Options{URL: url})
	if err != nil {
		return false, err
	}
	defer server.Close() //nolint:errcheck // nothing is held back
	in, err := server.Inspect(t.Context(), "shop")
	if err == nil && !in.Local {
		t.Errorf("%s leaves this machine", url)
	}
	var told bool
	err = errors.Join(err, server.Pool().QueryRow(t.Context(), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(&told))
	if err == nil && told != in.Encrypted {
		t.Errorf("%s: the server says that TLS is %v, we %v", url, told, in.Encrypted)
	}
	return in.Encrypted, err
}

// how a connection comes about.
type how string

const (
	plain   how = "plain"
	secret  how = "encrypted"
	refused how = "refused"
)

func (e *encrypted) try(t *testing.T, url string, want how) {
	t.Helper()
	got := plain
	is, err := opened(t, url)
	for range 3 { // with TLS 1.3 what a server says of a certificate is lost where the client has written meanwhile
		if !errors.Is(err, syscall.ECONNRESET) {
			break
		}
		is, err = opened(t, url)
	}
	switch {
	case errors.Is(err, postgres.ErrRefused) && !errors.Is(err, postgres.ErrUnreachable):
		got = refused
	case err != nil:
		t.Errorf("%s: %v, want it %s", url, err, want)
		return
	case is:
		got = secret
	}
	if got != want {
		t.Errorf("%s: %s (%v), want it %s", url, got, err, want)
	}
}

// TestSSLMode: sslmode and what belongs to it mean what they mean for libpq, against a
// server that takes connections with TLS, without, or with a certificate of the client.
// Source: https://www.postgresql.org/docs/15/libpq-ssl.html, table 34.1.
func TestSSLMode(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	e := newEncrypted(t)
	ours, theirs := "sslrootcert="+e.root.File, "sslrootcert="+e.other.File
	client := e.root.Issue(t, pgtest.Certificate{Name: certified})
	files := func(i pgtest.Issued) (cert, key string) { return "sslcert=" + i.Cert, "sslkey=" + i.Key }
	cert, key := files(client)
	strangersCert, strangersKey := files(e.other.Issue(t, pgtest.Certificate{Name: certified}))
	oldCert, oldKey := files(e.root.Issue(t, pgtest.Certificate{Name: certified, Expired: true}))
	namesakesCert, namesakesKey := files(e.root.Issue(t, pgtest.Certificate{Name: anyhow}))
	for _, test := range []struct {
		role, host string
		parameters []string
		want       how
	}{
		{anyhow, "127.0.0.1", []string{"sslmode=disable"}, plain},
		{anyhow, "127.0.0.1", []string{"sslmode=allow"}, plain},
		{anyhow, "127.0.0.1", nil, secret}, // prefer
		{anyhow, "127.0.0.1", []string{"sslmode=prefer"}, secret},
		{anyhow, "127.0.0.1", []string{"sslmode=require"}, secret},
		{anyhow, "127.0.0.1", []string{"sslmode=require", "sslnegotiation=postgres"}, secret},
		{onlyTLS, "127.0.0.1", []string{"sslmode=disable"}, refused},
		{onlyTLS, "127.0.0.1", []string{"sslmode=allow"}, secret},
		{onlyTLS, "127.0.0.1", []string{"sslmode=prefer"}, secret},
		{onlyPlain, "127.0.0.1", []string{"sslmode=allow"}, plain},
		{onlyPlain, "127.0.0.1", []string{"sslmode=prefer"}, plain},
		{onlyPlain, "127.0.0.1", []string{"sslmode=require"}, refused},

		{anyhow, "127.0.0.1", []string{"sslmode=require", ours}, secret},
		{anyhow, "127.0.0.1", []string{"sslmode=require", theirs}, refused}, // a root makes it verify-ca
		{anyhow, "127.0.0.1", []string{"sslmode=verify-ca", ours}, secret},  // any host
		{anyhow, "127.0.0.1", []string{"sslmode=verify-ca", theirs}, refused},
		{anyhow, "localhost", []string{"sslmode=verify-full", ours}, secret},
		{anyhow, "127.0.0.1", []string{"sslmode=verify-full", ours}, refused}, // the certificate is of localhost
		{anyhow, "localhost", []string{"sslmode=verify-full", theirs}, refused},
		{anyhow, "localhost", []string{"sslmode=verify-full"}, refused}, // no authority of the system's has signed it
		{anyhow, "localhost", []string{"sslrootcert=system"}, refused},
		{onlyPlain, "localhost", []string{"sslmode=verify-full", ours}, refused},

		{certified, "localhost", []string{"sslmode=verify-full", ours, cert, key}, secret},
		{certified, "localhost", []string{"sslmode=verify-full", ours}, refused},
		{certified, "localhost", []string{"sslmode=verify-full", ours, strangersCert, strangersKey}, refused},
		{certified, "localhost", []string{"sslmode=verify-full", ours, oldCert, oldKey}, refused},
		{certified, "localhost", []string{"sslmode=verify-full", ours, namesakesCert, namesakesKey}, refused},
	} {
		t.Run(fmt.Sprint(test.role, " at ", test.host, " ", test.parameters), func(t *testing.T) {
			e.try(t, e.url(test.role, test.host, test.parameters...), test.want)
		})
	}
	e.expires(t, ours)
}

// expires has the server show a certificate that is too old.
func (e *encrypted) expires(t *testing.T, ours string) {
	t.Helper()
	e.cluster.Present(t, e.root.Issue(t, pgtest.Certificate{Name: "server", Hosts: []string{"localhost"}, Expired: true}))
	for mode, want := range map[string]how{"prefer": secret, "require": refused, "verify-ca": refused, "verify-full": refused} {
		parameters := []string{"sslmode=" + mode}
		if mode != "prefer" {
			parameters = append(parameters, ours)
		}
		e.try(t, e.url(anyhow, "localhost", parameters...), want)
	}
}

// TestTLSBadParameters: what asks for a check that would not be made is refused, and what
// changes nothing is taken.
func TestTLSBadParameters(t *testing.T) {
	t.Parallel()
	crl := t.TempDir() + "/crl.pem"
	for _, p := range []string{
		"sslcrl=" + crl, "sslcrldir=/", "requirepeer=postgres", "ssl_min_protocol_version=TLSv1.3", "hostaddr=127.0.0.1", "gssencmode=require",
		"sslrootcert=" + crl, "sslmode=always", "sslcert=" + crl,
	} {
		_, err := postgres.Connect(t.Context(), postgres.Options{URL: "postgres://me@127.0.0.1:1/shop?" + p})
		if name, _, _ := strings.Cut(p, "="); !errors.Is(err, postgres.ErrBadURL) || !strings.Contains(err.Error()+" sslrootcert sslcert", name) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if _, err := opened(t, pgtest.Server(t)+"&gssencmode=prefer&sslcompression=0&keepalives=1&fallback_application_name=x&load_balance_hosts=disable"); err != nil {
		t.Error(err)
	}
}

// TestSeveralHosts: of several servers that is used which is as target_session_attrs says,
// encrypted as the others; LISTEN and the connections that are made beside a pool, too.
func TestSeveralHosts(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	e := newEncrypted(t)
	standby := e.cluster.Standby(t)
	hosts := "localhost:" + standby.Port() + ",localhost:" + e.cluster.Port()
	query := "sslmode=verify-full&sslrootcert=" + url.QueryEscape(e.root.File)
	for attributes, readOnly := range map[string]bool{"read-write": false, "primary": false, "standby": true, "any": true} {
		// A standby has no fleet to bring up to date, and is only looked at.
		at := fmt.Sprintf("postgres://%s@%s/%s?%s&target_session_attrs=%s", onlyTLS, hosts, e.database, query, attributes)
		server, err := postgres.Connect(t.Context(), postgres.Options{URL: at})
		if err != nil {
			t.Errorf("%s: %v", attributes, err)
			continue
		}
		in, err := server.Inspect(t.Context(), "shop")
		if err != nil && !in.ReadOnly || in.ReadOnly != readOnly || !in.Encrypted {
			t.Errorf("%s: read-only %v, encrypted %v, %v", attributes, in.ReadOnly, in.Encrypted, err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
	server := connect(t, fmt.Sprintf("postgres://%s@%s/%s?%s&target_session_attrs=read-write", onlyTLS, hosts, e.database, query))
	st := open(t, server, "shop")
	changes := st.Changes(t.Context())
	<-changes // it listens
	if _, _, err := store.Register(t.Context(), st, newThread("work", ""), nil); err != nil {
		t.Fatal(err)
	}
	<-changes
	if err := st.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if said := e.cluster.Refused(t); len(said) > 0 {
		t.Errorf("the server has refused a connection: %q", said)
	}
}
