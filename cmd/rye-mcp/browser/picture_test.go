package browser_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-rod/rod/lib/proto"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

var pictures = flag.String("pictures", "", "write the pictures of README and guides into this folder")

// keepPicture writes what a tab shows into RYE_BROWSER_PICTURES, when it is set, so that
// it is seen why a test has failed.
func (b *tab) keepPicture() {
	dir := os.Getenv("RYE_BROWSER_PICTURES")
	if dir == "" {
		return
	}
	if err := b.picture(filepath.Join(dir, strings.ReplaceAll(b.Name(), "/", "_")+".png")); err != nil {
		b.Log(err)
	}
}

// picture writes what a tab shows as PNG.
func (b *tab) picture(path string) error {
	png, err := b.page.Screenshot(false, &proto.PageCaptureScreenshot{Format: proto.PageCaptureScreenshotFormatPng})
	if err != nil {
		return err
	}
	return os.WriteFile(path, png, 0o644) //nolint:gosec // pictures are for everybody
}

// TestPictures makes the pictures of the page, of threads that truly work, when -pictures says
// where; without it the test only goes the same way.
func TestPictures(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, release)
	s := p.serve()
	dir := *pictures
	if dir == "" {
		dir = t.TempDir()
	}
	parent := s.start("release", nil)
	b := s.open(look{width: 1280, height: 800, reduced: true})
	b.find("heading", "^1 thread asks you$")
	b.find("treeitem", "^Review the login.* completed ")
	b.openRow("^Prepare release")
	b.press("tab", "^Timeline$")
	b.says("As a table")
	for name, dark := range map[string]bool{"page-light.png": false, "page-dark.png": true} {
		b.show(look{width: 1280, height: 800, dark: dark, reduced: true})
		b.noError(b.picture(filepath.Join(dir, name)))
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Size() > 200<<10 {
			t.Errorf("%s: %v, %v", name, info.Size(), err)
		}
	}
	p.rye("threads", "kill", string(parent))
}

// release is a project in the middle of some work.
const release = `
-- home/.ai/config/agent/resilience.yaml --
on_limit: {action: ask, deadline_seconds: 900}
-- login.go --
package login
-- .ai/directives/release.md --
'''xml
<directive name="release" version="1.0.0">
  <metadata><description>Prepares a release.</description><model tier="fast" /><limits turns="12" spend="2.00" spawns="8" />
    <permissions><execute><directive>review</directive><directive>fix-test</directive><directive>notes</directive><tool>rye.file-system.*</tool><tool>rye.agent.threads.orchestrator</tool></execute></permissions></metadata>
</directive>
'''

Prepare release 2.4
-- .ai/directives/review.md --
'''xml
<directive name="review" version="1.0.0">
  <metadata><description>Reviews code.</description><model tier="fast" /><limits turns="6" spend="0.50" />
    <permissions><execute><tool>rye.file-system.*</tool></execute></permissions></metadata>
</directive>
'''

Review the login code
-- .ai/directives/fix-test.md --
'''xml
<directive name="fix-test" version="1.0.0">
  <metadata><description>Mends a test.</description><model tier="fast" /><limits turns="3" spend="0.40" on_limit="ask" />
    <permissions><execute><tool>rye.file-system.*</tool></execute></permissions></metadata>
</directive>
'''

Mend TestExpiry
-- .ai/directives/notes.md --
'''xml
<directive name="notes" version="1.0.0">
  <metadata><description>Writes notes.</description><model tier="fast" /><limits turns="8" spend="0.30" />
    <permissions><execute><tool>rye.file-system.*</tool></execute></permissions></metadata>
</directive>
'''

Write the release notes
-- model.yaml --
turns:
  - match: {first: Prepare release, turn: 1}
    text: I look at what there is.
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}]
    usage: {input_tokens: 5200, output_tokens: 420}
    delay: 350ms
  - match: {first: Prepare release, turn: 2}
    text: Three threads do the parts.
    tool_calls:
      - {name: rye_execute, input: {item_id: review, thread: fork, async: true}}
      - {name: rye_execute, input: {item_id: fix-test, thread: fork, async: true}}
      - {name: rye_execute, input: {item_id: notes, thread: fork, async: true}}
    usage: {input_tokens: 7400, output_tokens: 610}
    delay: 450ms
  - match: {first: Prepare release}
    tool_calls:
      - {name: rye_execute, input: {item_id: rye/agent/threads/orchestrator, parameters: {operation: wait_threads, thread_ids: ['{{ index (results "thread_id") 0 }}', '{{ index (results "thread_id") 1 }}', '{{ index (results "thread_id") 2 }}']}}}
    usage: {input_tokens: 9100, output_tokens: 350}
    delay: 200ms
  - match: {first: Review the login, turn: 1}
    text: The sessions are checked in one place.
    tool_calls: [{name: rye_file_system_read, input: {path: login.go}}]
    usage: {input_tokens: 12400, output_tokens: 900}
    delay: 400ms
  - match: {first: Review the login}
    text: No defect found in the login; one comment is out of date.
    usage: {input_tokens: 14800, output_tokens: 1200}
    delay: 500ms
  - match: {first: Mend TestExpiry}
    text: The clock of the test runs ahead; I look at where it is set.
    tool_calls: [{name: rye_file_system_read, input: {path: login.go}}]
    usage: {input_tokens: 21000, output_tokens: 800}
    delay: 250ms
  - match: {first: Write the release notes, turn: 1}
    text: I read what has changed since 2.3.
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}]
    usage: {input_tokens: 16000, output_tokens: 700}
    delay: 300ms
  - match: {first: Write the release notes}
    hang: true
`
