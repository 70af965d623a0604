package process

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestToolEnv(t *testing.T) {
	t.Parallel()
	got := ToolEnv([]string{
		"PATH=/bin", "HOME=/h", "LANG=de", "LC_ALL=C", "TMPDIR=/t", "TERM=dumb", "USER=u",
		"ANTHROPIC_API_KEY=k", "RYE_PARENT_THREAD_ID=t", "LD_PRELOAD=x", "BASH_ENV=x", "HTTPS_PROXY=p", "no equals sign", "LC_=", "=x",
	}, "EXTRA=1", "PATH=/mine")
	want := []string{"PATH=/bin", "HOME=/h", "LANG=de", "LC_ALL=C", "TMPDIR=/t", "TERM=dumb", "USER=u", "LC_=", "EXTRA=1", "PATH=/mine"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if ToolEnv(nil) == nil {
		t.Error("nil, which some take for: inherit everything")
	}
}

func TestThreadEnv(t *testing.T) {
	t.Parallel()
	pass := []string{
		"PATH=/bin", "HOME=/h", "USER=u", "LOGNAME=u", "SHELL=/bin/sh", "LANG=de", "LC_TIME=C", "TZ=UTC", "TMPDIR=/t",
		"USER_SPACE=/s", "XDG_CONFIG_HOME=/c", "RYE_PARENT_THREAD_ID=t", "SSL_CERT_FILE=f", "SSL_CERT_DIR=d",
		"HTTP_PROXY=p", "HTTPS_PROXY=p", "NO_PROXY=n", "http_proxy=p", "https_proxy=p", "no_proxy=n", "GOCOVERDIR=/g",
	}
	stop := []string{"OPENAI_API_KEY=k", "AWS_SECRET_ACCESS_KEY=k", "LD_PRELOAD=x", "TERM=dumb", "ANTHROPIC_API_KEY_2=k", "PATHS=x", "garbage", "=x"}
	secret := []string{"ANTHROPIC_API_KEY=k=with=equals", "RYE_LAB_KEY=k"}
	env, secrets := ThreadEnv(slices.Concat(stop, pass, secret, stop), "ANTHROPIC_API_KEY", "MISSING", "RYE_LAB_KEY", "HOME")
	if !slices.Equal(env, pass) || !slices.Equal(secrets, secret) {
		t.Errorf("%q\nwant %q\nand %q\nwant %q", env, pass, secrets, secret)
	}
}

// No variable passes that is not on a list, whatever its name looks like.
func TestEnvLetsNothingElsePass(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`(PATH|HOME|LC|XDG|RYE|[A-Z_]{1,3})?[A-Za-z_]{0,6}`).Draw(t, "name")
		environ := []string{name + "=" + rapid.String().Draw(t, "value")}
		prefixed := func(prefixes ...string) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
		}
		if len(ToolEnv(environ)) > 0 && !toolVariable(name) {
			t.Fatalf("a tool gets %s", name)
		}
		if len(ToolEnv(environ)) > 0 && prefixed("RYE_", "XDG_") {
			t.Fatalf("a tool gets %s", name)
		}
		env, secrets := ThreadEnv(environ, name)
		if got := slices.Concat(env, secrets); !slices.Equal(got, environ) || len(env) > 0 && !neededVariable(name) {
			t.Fatalf("named, it is in the environment: %q, in the secrets: %q", env, secrets)
		}
		env, secrets = ThreadEnv(environ)
		if len(env) == 0 && prefixed("LC_", "XDG_", "RYE_") || len(secrets) > 0 {
			t.Fatalf("not named, it is in the environment: %q, in the secrets: %q", env, secrets)
		}
	})
}
