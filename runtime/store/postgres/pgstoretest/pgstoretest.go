// Package pgstoretest gives tests stores on real PostgreSQL servers: each in a database of its
// own, on the cluster that the tests of a package share.
package pgstoretest

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
)

// Connect is connected to a new database until the test ends.
func Connect(t testing.TB) *postgres.Server {
	t.Helper()
	return ConnectTo(t, pgtest.Server(t))
}

// ConnectTo is Connect for a database that others have, too.
func ConnectTo(t testing.TB, url string) *postgres.Server {
	t.Helper()
	server, err := postgres.Connect(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close the server: %v", err)
		}
	})
	return server
}

// Project opens a project until the test ends.
func Project(t testing.TB, server *postgres.Server, name string) *postgres.Store {
	t.Helper()
	st, err := server.Project(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Errorf("close the project: %v", err)
		}
	})
	return st
}
