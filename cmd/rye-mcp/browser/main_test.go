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
	process *launcher.Launcher
	browser *rod.Browser
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
	profile, err := os.MkdirTemp("", "rye-browser-")
	if err != nil {
		s.err = err
		return
	}
	s.process = launcher.New().Bin(program).Leakless(false).UserDataDir(profile).
		NoSandbox(os.Getuid() == 0). // root's cannot be made
		Set("disable-gpu").Set("lang", "en-US")
	at, err := s.process.Launch()
	if err != nil {
		s.err = err
		return
	}
	s.browser = rod.New().ControlURL(at).NoDefaultDevice()
	s.err = s.browser.Connect()
}

func (s *shared) close() {
	if s.browser != nil {
		_ = s.browser.Close()
		s.process.Cleanup() // it waits for the process, which writes into its folder until then
	}
}
