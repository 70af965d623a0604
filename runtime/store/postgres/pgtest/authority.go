package pgtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates of servers and clients.
type Authority struct {
	// File has its own certificate, for sslrootcert.
	File string

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	seq  int64
}

// Certificate is what a certificate says.
type Certificate struct {
	// Name is the common name: of a client's, the role that it connects as.
	Name string
	// Hosts are the names and addresses of a server; a client's has none.
	Hosts []string
	// Expired: it was valid until an hour ago.
	Expired bool
}

// Issued is a certificate with its key, as files.
type Issued struct {
	Cert, Key string

	pair []byte // both, as PEM
}

// NewAuthority makes an authority whose files lie in a folder of the test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{File: filepath.Join(t.TempDir(), "root.pem"), key: newKey(t)}
	root := a.template(Certificate{Name: "rye test authority"})
	root.IsCA, root.BasicConstraintsValid, root.KeyUsage = true, true, x509.KeyUsageCertSign
	a.cert = root
	der, err := x509.CreateCertificate(rand.Reader, root, root, &a.key.PublicKey, a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	write(t, a.File, block("CERTIFICATE", der))
	return a
}

// Issue makes a certificate.
func (a *Authority) Issue(t testing.TB, c Certificate) Issued {
	t.Helper()
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, a.template(c), a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	i := Issued{Cert: filepath.Join(folder, "cert.pem"), Key: filepath.Join(folder, "key.pem")}
	write(t, i.Cert, block("CERTIFICATE", der))
	write(t, i.Key, block("PRIVATE KEY", secret))
	i.pair = append(block("CERTIFICATE", der), block("PRIVATE KEY", secret)...)
	return i
}

// template is a certificate that is valid around now.
func (a *Authority) template(c Certificate) *x509.Certificate {
	a.seq++
	now := time.Now()
	made := &x509.Certificate{
		SerialNumber: big.NewInt(a.seq), Subject: pkix.Name{CommonName: c.Name},
		NotBefore: now.Add(-24 * time.Hour), NotAfter: now.Add(24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if c.Expired {
		made.NotAfter = now.Add(-time.Hour)
	}
	for _, host := range c.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			made.IPAddresses = append(made.IPAddresses, ip)
		} else {
			made.DNSNames = append(made.DNSNames, host)
		}
	}
	return made
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func write(t testing.TB, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
