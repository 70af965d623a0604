package browser_test

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/launcher"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/cli"
	_ "github.com/rye-mcp/rye-mcp/cmd/rye-mcp/confined" // tests run themselves as commands of tools
)

// TestMain makes rye-mcp a program that tests run as a real child process.
func TestMain(m *testing.M) {
	testscript.Main(withBrowser{m}, map[string]func(){
		"rye-mcp": func() { os.Exit(cli.Main(cli.OS(), os.Args[1:])) },
	})
}

// withBrowser ends the browser after the tests.
type withBrowser struct{ testscript.TestingM }

func (w withBrowser) Run() int {
	defer chromium.close()
	return w.TestingM.Run()
}

// chromium is the one browser of all tests: each has a context of its own in it.
var chromium shared

type shared struct {
	once    sync.Once
	browser *rod.Browser
	profile string
	err     error
}

// errNoBrowser says why nothing is tested.
var errNoBrowser = errors.New("no Chromium is here: RYE_CHROMIUM names none, and chromium, chromium-browser and google-chrome are not on the PATH; Debian's package is chromium")

// inContext is the browser with cookies, storage and cache of its own.
func (s *shared) inContext(t testing.TB) *rod.Browser {
	t.Helper()
	s.once.Do(s.launch)
	if errors.Is(s.err, errNoBrowser) {
		t.Skip(s.err)
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	own, err := s.browser.Incognito()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
	return own
}

func (s *shared) launch() {
	program := os.Getenv("RYE_CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"} {
		if path, err := exec.LookPath(name); program == "" && err == nil {
			program = path
		}
	}
	if program == "" {
		s.err = errNoBrowser
		return
	}
	if s.profile, s.err = os.MkdirTemp("", "rye-browser-"); s.err != nil {
		return
	}
	var at string
	at, s.err = launcher.New().Bin(program).Leakless(false).UserDataDir(s.profile).
		NoSandbox(os.Getuid() == 0). // root's cannot be made
		Set("disable-gpu").Set("lang", "en-US").Launch()
	if s.err != nil {
		return
	}
	s.browser = rod.New().ControlURL(at).NoDefaultDevice()
	s.err = s.browser.Connect()
}

func (s *shared) close() {
	if s.browser != nil {
		_ = s.browser.Close()
	}
	if s.profile != "" {
		_ = os.RemoveAll(s.profile)
	}
}
