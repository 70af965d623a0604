package storeurl_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"local":                                                         "local",
		"postgres://db.example/rye":                                     "postgres://db.example/rye",
		"POSTGRESQL://me@db.example:5433/rye":                           "postgres://me@db.example:5433/rye",
		"postgres://me:pa%2Fss@db/rye":                                  "postgres://me:********@db/rye",
		"postgres://me@db/rye?password=hidden1":                         "postgres://me@db/rye?password=********",
		"postgres://a:1,b:2/rye":                                        "postgres://a:1,b:2/rye",
		"postgres://[::1]:5432/rye":                                     "postgres://[::1]:5432/rye",
		"postgres://":                                                   "postgres:///",
		"postgres:///rye?host=/run/postgresql":                          "postgres:///rye?host=/run/postgresql",
		"postgres://%2Frun%2Fpostgresql/rye":                            "postgres:///rye?host=%2Frun%2Fpostgresql",
		"postgres:///rye?service=team":                                  "postgres:///rye?service=team",
		"postgres://db/rye?sslmode=verify-full&sslrootcert=/etc/ca.pem": "postgres://db/rye?sslmode=verify-full&sslrootcert=/etc/ca.pem",
	} {
		u, err := storeurl.Parse(text)
		if err != nil || u.String() != want {
			t.Errorf("%s: %q, %v; want %q", text, u, err, want)
			continue
		}
		again, err := storeurl.Parse(u.Secret())
		if err != nil || again.Secret() != u.Secret() || again.IsLocal() != (text == storeurl.Local) {
			t.Errorf("%s: %q becomes %q, %v", text, u.Secret(), again.Secret(), err)
		}
	}
}

func TestParseBad(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                        "is empty",
		"Local":                                   "no URL",
		"host=db user=me":                         "space",
		"db.example/rye":                          "no URL",
		"mysql://db/secret7":                      "scheme",
		"postgres://me:********@db/rye":           "in the place of a password",
		"postgres://db/rye?password=********":     "in the place of a password",
		"sqlite:///secret7":                       "scheme",
		"langgraph+http://secret7:2024":           "mirrored",
		"langgraph+https://secret7":               "mirrored",
		"postgres://me:se/cret7@db/rye":           "port",
		"postgres://me:%zzsecret7@db/rye":         "cannot be read",
		"postgres://me:secret7#@db/rye":           "#",
		"postgres://db:99999/secret7":             "port",
		"postgres://db:0/secret7":                 "port",
		"postgres://db:5x/secret7":                "port",
		"postgres://[::1/secret7":                 "IPv6",
		"postgres://::1/secret7":                  "host",
		"postgres://db/r?sslmode=secret7":         "sslmode",
		"postgres://db/r?passfile=secret7":        "whole path",
		"postgres://db/r?user=a&user=b":           "twice",
		"postgres://db/r?secret7=a&secret7=":      "twice",
		"postgres://db/r\nsecret7":                "line break",
		"postgres://%2Frun/r?host=/other":         "host",
		"postgres://" + strings.Repeat("x", 5000): "longer",
	} {
		u, err := storeurl.Parse(text)
		bad, is := errors.AsType[*storeurl.Error](err)
		if !is || !strings.Contains(bad.Reason, want) || bad.Try() == "" {
			t.Errorf("%q: %v, %v; want it to say %q", text, u, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret7") {
			t.Errorf("%q is quoted: %v", text, err)
		}
	}
}

// TestNothingShowsIt: however an address is printed, its password is not.
func TestNothingShowsIt(t *testing.T) {
	t.Parallel()
	u, err := storeurl.Parse("postgres://me:hush-hush@db/rye?sslpassword=hush-hush")
	if err != nil {
		t.Fatal(err)
	}
	inside := struct {
		U storeurl.URL
		u storeurl.URL
		p *storeurl.URL
	}{u, u, &u}
	written, err := json.Marshal(inside)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{
		fmt.Sprint(u, &u, inside), fmt.Sprintf("%v %+v %#v %s %q", u, inside, inside, u, u), string(written),
		u.Masked("dial " + u.Secret() + ": password hush-hush is wrong"),
	} {
		if strings.Contains(shown, "hush") {
			t.Errorf("shown: %s", shown)
		}
	}
	if !u.HasPassword() || !strings.Contains(u.Secret(), "hush-hush") {
		t.Errorf("the password is lost: %s", u)
	}
}

func TestWithPassword(t *testing.T) {
	t.Parallel()
	u, err := storeurl.Parse("postgres://me:old@db/rye")
	if err != nil {
		t.Fatal(err)
	}
	if with := u.WithPassword("a/b&c=d").Secret(); with != "postgres://me@db/rye?password=a%2Fb%26c%3Dd" {
		t.Errorf("got %s", with)
	}
	if with := (storeurl.URL{}).WithPassword("x"); !with.IsLocal() {
		t.Errorf("got %s", with)
	}
}

// TestSamePlace: a secret makes no other place of an address, anything else does.
func TestSamePlace(t *testing.T) {
	t.Parallel()
	const of = "postgres://me:pw@db/rye?sslmode=disable"
	for text, want := range map[string]bool{
		of: true, "postgres://me@db/rye?sslmode=disable": true, "postgres://me@db/rye?password=x&sslmode=disable": true,
		"postgres://db/rye?sslmode=disable": false, "postgres://me@db/other?sslmode=disable": false, "postgres://me@db/rye": false, "local": false,
	} {
		u, err := storeurl.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		at, err := storeurl.Parse(of)
		if err != nil {
			t.Fatal(err)
		}
		if at.SamePlace(u) != want || u.SamePlace(at) != want || !u.SamePlace(u) {
			t.Errorf("%s: the same place is %v, want %v", text, !want, want)
		}
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	env := map[string]string{"PGHOST": "env.example", "PGPORT": "99", "PGUSER": "envuser", "PGPASSWORD": "envpass", "PGDATABASE": "envdb", "PGPASSFILE": "/p"}
	for text, want := range map[string]string{
		"local":                       "local",
		"postgres://me:pw@db:1/rye":   "postgres://me:pw@db:1/rye?passfile=%2Fp",
		"postgres://":                 "postgres:///?dbname=envdb&host=env.example&passfile=%2Fp&password=envpass&port=99&user=envuser",
		"postgres://me@db/":           "postgres://me@db/?dbname=envdb&passfile=%2Fp&password=envpass",
		"postgres:///rye?service=s":   "postgres:///rye?passfile=%2Fp&service=s",
		"postgres://db/rye?user=mine": "postgres://db/rye?passfile=%2Fp&password=envpass&user=mine",
	} {
		u, err := storeurl.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := u.Complete(func(name string) string { return env[name] })
		if err != nil || whole.Secret() != want {
			t.Errorf("%s: %s, %v\nwant %s", text, whole.Secret(), err, want)
		}
	}
	u, err := storeurl.Parse("postgres://db/rye")
	if err != nil {
		t.Fatal(err)
	}
	if whole, err := u.Complete(func(name string) string { return map[string]string{"PGSSLROOTCERT": "ca.pem"}[name] }); err == nil {
		t.Errorf("a file of whatever folder: %s", whole.Secret())
	}
}

// FuzzParse: whatever is given, an error quotes none of it, and what is taken means the
// same again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"local", "postgres://me:pw@a:1,b:2/db?x=y", "postgres://%2Frun/db", "postgres://[::1]:5/x", "mysql://x", "postgres://me:p@ss@h/d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := storeurl.Parse(text)
		if err != nil {
			if _, is := errors.AsType[*storeurl.Error](err); !is {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := storeurl.Parse(u.Secret())
		if err != nil || again.Secret() != u.Secret() {
			t.Fatalf("%q becomes %q: %q, %v", text, u.Secret(), again.Secret(), err)
		}
		if _, err := storeurl.Parse(u.WithPassword("pass word").Secret()); err != nil {
			t.Fatalf("%q with a password: %v", text, err)
		}
		_ = u.String()
	})
}
