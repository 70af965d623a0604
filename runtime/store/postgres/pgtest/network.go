package pgtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Network makes a cluster listen on the loopback's 127.0.0.1, too.
type Network struct {
	// Server is the certificate with which it offers TLS; none: it does not.
	Server Issued
	// Clients is the authority whose certificates it takes from clients.
	Clients *Authority
	// Rules are lines of pg_hba.conf about connections that do not come by the socket.
	Rules []string
}

// listen writes what a cluster needs to listen, and returns lines of its configuration.
func (c *Cluster) listen(t testing.TB, n Network) (conf string, err error) {
	if c.port, err = freePort(); err != nil {
		return "", err
	}
	conf = fmt.Sprintf("listen_addresses = '127.0.0.1'\nport = %d\nlog_connections = on\n", c.port)
	if n.Server.pair != nil {
		c.keep(t, certificateFile, n.Server.pair)
		conf += fmt.Sprintf("ssl = on\nssl_cert_file = '%s'\nssl_key_file = '%s'\n", c.file(certificateFile), c.file(certificateFile))
	}
	if n.Clients != nil {
		root, err := os.ReadFile(n.Clients.File)
		if err != nil {
			return "", err
		}
		c.keep(t, clientsFile, root)
		conf += fmt.Sprintf("ssl_ca_file = '%s'\n", c.file(clientsFile))
	}
	rules := "local all,replication all trust\n" + strings.Join(n.Rules, "\n") + "\n"
	return conf, os.WriteFile(filepath.Join(c.data(), "pg_hba.conf"), []byte(rules), 0o600)
}

// Files in the folder of a cluster.
const (
	certificateFile = "server.pem"
	clientsFile     = "clients.pem"
)

func (c *Cluster) file(name string) string { return filepath.Join(c.folder, name) }

// keep puts a file into the folder of the cluster, for its server alone.
func (c *Cluster) keep(t testing.TB, name string, content []byte) {
	t.Helper()
	c.keepIn(t, c.folder, name, content)
}

func (c *Cluster) keepIn(t testing.TB, folder, name string, content []byte) {
	t.Helper()
	path := filepath.Join(folder, name)
	write(t, path, content)
	if err := c.own(path); err != nil {
		t.Fatal(err)
	}
}

// Refused returns what the server of a [Network] has said to those whom it has turned away.
func (c *Cluster) Refused(t testing.TB) (lines []string) {
	t.Helper()
	log, err := os.ReadFile(c.Log())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		// The one exception is the question whether it has started, by its own socket.
		if strings.Contains(line, "FATAL") && !strings.Contains(line, "starting up") {
			lines = append(lines, line)
		}
	}
	return lines
}

// Refuses returns what waits until the server has logged a text once more than by now.
func (c *Cluster) Refuses(t testing.TB, text string) (wait func()) {
	t.Helper()
	times := func() int {
		log, err := os.ReadFile(c.Log())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(log), text)
	}
	before := times()
	return func() {
		t.Helper()
		over := time.After(startWait)
		for times() == before {
			select {
			case <-over:
				t.Fatalf("nobody is refused: %s", text)
			case <-time.After(5 * time.Millisecond): // a log tells nobody
			}
		}
	}
}

// freePort is a port of the loopback that nobody listens on. A server can not be told to
// choose one; until it has it, another process can take it, and the server does not start.
func freePort() (int, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is TCP's
	return port, listener.Close()
}

// Port is that on which a cluster with a [Network] listens, and of each one's socket.
func (c *Cluster) Port() string {
	if c.port == 0 {
		return "5432"
	}
	return strconv.Itoa(c.port)
}

// Present makes the server show another certificate to those who connect from now on.
func (c *Cluster) Present(t testing.TB, i Issued) {
	t.Helper()
	// Another name, so that it can be seen that the server has read it.
	name := fmt.Sprintf("server%d.pem", c.certificates.Add(1))
	c.keep(t, name, i.pair)
	c.Exec(t, "ALTER SYSTEM SET ssl_key_file = '"+c.file(name)+"'")
	c.Set(t, "ssl_cert_file", c.file(name))
}
