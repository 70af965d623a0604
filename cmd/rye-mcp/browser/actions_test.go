package browser_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-rod/rod/lib/proto"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// busy is a project whose directives do what the tests of the page need.
const busy = `
-- .ai/directives/greet.md --
'''xml
<directive name="greet" version="1.0.0">
  <metadata><description>Greets somebody.</description><model tier="fast" /><limits turns="3" spend="0.05" /></metadata>
  <inputs>
    <input name="name" type="string" required="true">Whom to greet.</input>
    <input name="tone" type="string" enum="cool,warm" default="cool">How.</input>
    <input name="times" type="integer" default="1">How often.</input>
    <input name="loud" type="boolean">Whether to shout.</input>
  </inputs>
</directive>
'''

Greet {input:name}, {input:tone}, {input:times} times, loud: {input:loud}.
-- .ai/directives/hold.md --
'''xml
<directive name="hold" version="1.0.0">
  <metadata><description>Waits for its model.</description><model tier="fast" /><limits turns="5" spend="0.10" />
    <permissions><execute><tool>rye.file-system.ls</tool></execute></permissions></metadata>
  <inputs><input name="n" type="string" required="true">Which.</input></inputs>
</directive>
'''

Number {input:n}. Be held.
-- .ai/directives/ask.md --
'''xml
<directive name="ask" version="1.0.0">
  <metadata><description>Asks at its first limit.</description><model tier="fast" /><limits turns="1" spend="0.10" on_limit="ask" />
    <permissions><execute><tool>rye.file-system.ls</tool></execute></permissions></metadata>
  <inputs><input name="n" type="string" required="true">Which.</input></inputs>
</directive>
'''

Go on about {input:n}.
-- .ai/directives/parent.md --
'''xml
<directive name="parent" version="1.0.0">
  <metadata><description>Has two children.</description><model tier="fast" /><limits turns="9" spend="0.40" spawns="5" />
    <permissions><execute><directive>hold</directive><directive>greet</directive><tool>rye.agent.threads.orchestrator</tool></execute></permissions></metadata>
</directive>
'''

Look after children.
-- home/.ai/config/agent/resilience.yaml --
on_limit: {action: ask, deadline_seconds: 300}
-- model.yaml --
turns:
  - match: {first: Look after children, turn: 1}
    tool_calls:
      - {name: rye_execute, input: {item_id: greet, thread: fork, parameters: {name: Grace}}}
      - {name: rye_execute, input: {item_id: hold, thread: fork, async: true, parameters: {n: below}}}
  - match: {first: Look after children, turn: 2}
    tool_calls:
      - {name: rye_execute, input: {item_id: rye/agent/threads/orchestrator, parameters: {operation: wait_threads, thread_ids: ['{{ index (results "thread_id") 1 }}']}}}
  - match: {first: Look after children}
    text: Both are done.
  - match: {last: What now}
    text: Resumed and done.
  - match: {last: And the copy}
    text: The copy is done.
  - match: {first: "Greet "}
    text: 'Said {{ first "Greet (.*)" }}'
  - match: {last: Hurry up}
    text: I hurried.
  - match: {first: Do the rest}
    text: The rest is done.
  - match: {first: "Number of parts", turn: 1}
    tool_calls: [{name: rye_file_system_ls, input: {path: .}}]
  - match: {first: Be held}
    text: Done waiting.
  - match: {last: This is your last turn}
    text: What I have.
  - match: {first: Go on about, turn: 2}
    text: Went on.
  - tool_calls:
      - {name: rye_file_system_ls, input: {path: .}}
    usage: {input_tokens: 300, output_tokens: 100}
`

// TestForm: a directive is started from a form that is made of its inputs, in their types.
func TestForm(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	p.rye("keys", "generate")
	p.rye("sign", "--type", "directive", "**")
	b := p.serve().open(desktop)
	b.press("button", "^Start a directive")
	b.says("Greets somebody")
	b.fill("Filter directives", "gre")
	b.press("button", "^greet")
	b.says("Whom to greet")
	b.press("button", "^Start$")
	var invalid string
	b.eval(&invalid, `() => document.querySelector(':invalid:not(form):not(fieldset)')?.name ?? ''`)
	if all := p.list(); invalid != "name" || len(all) > 0 {
		t.Errorf("without a required input %q is marked and %d threads began", invalid, len(all))
	}
	b.fill("^name", "Ada")
	b.choose("^tone", "warm")
	b.fill("^times", "3")
	b.press("checkbox", "^loud")
	b.press("any", "^Model and limits$")
	b.fill("Limit: turns", "2")
	b.press("button", "^Start$")
	b.find("heading", "Greet Ada")
	b.says("completed")
	all := p.list()
	if len(all) != 1 {
		t.Fatalf("%d threads began, want 1", len(all))
	}
	got := p.untilIs(all[0].ThreadID, thread.Completed)
	if got.Result != "Said Ada, warm, 3 times, loud: true." || got.Limits["turns"] != 2 {
		t.Errorf("it became %+v", got)
	}
}

// TestAnswers: a thread that asks stands on top with the time that it has, and each answer is taken.
func TestAnswers(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	s := p.serve()
	b := s.open(desktop)
	ids := s.startAll("ask", 3)
	b.find("heading", "^3 threads ask you$")
	b.says("[45]\\s?min.* left, then: stop")
	card := func(n string) within { return within{"article", "Go on about " + n + ". asks"} }

	b.fill("New limit: turns", "0", card("0"))
	b.press("button", "^Raise$", card("0"))
	var refused int
	b.eval(&refused, `() => document.querySelectorAll('article input:invalid').length`)
	if refused != 1 || slices.Contains(b.requests(), "POST /ui/api/call/approve_thread") {
		t.Errorf("a limit below the one that holds: %d fields are refused, and the page has asked %q", refused, b.requests())
	}
	b.fill("New limit: turns", "3", card("0"))
	b.press("button", "^Raise$", card("0"))
	if got := p.untilIs(ids[0], thread.Completed); got.Limits["turns"] != 3 || got.Result != "Went on." {
		t.Errorf("raised it became %+v", got)
	}
	b.gone("article", "Go on about 0. asks$")
	b.noError(b.page.Mouse.Click(proto.InputMouseButtonLeft, 1)) // once more, where the button was
	if asked := slices.DeleteFunc(b.requests(), func(r string) bool { return r != "POST /ui/api/call/approve_thread" }); len(asked) != 1 {
		t.Errorf("a second click has answered another question: %q", asked)
	}
	b.noError(b.page.Mouse.MoveTo(proto.NewPoint(1, 1)))
	b.eval(nil, `() => new Promise(done => {
		const look = () => document.querySelector('.ask-room') ? requestAnimationFrame(look) : done();
		look();
	})`) // the page below moves up
	b.press("button", "^Finish$", card("1"))
	if got := p.untilIs(ids[1], thread.Completed); got.Result != "What I have." {
		t.Errorf("finished it became %+v", got)
	}
	b.gone("article", "Go on about 1. asks$")
	b.press("button", "^Stop$", card("2"))
	p.untilIs(ids[2], thread.Error)
	b.gone("article", "asks$")
	b.gone("heading", "asks? you$")
}

// TestHandoffAnswers: a thread that asks whether it may hand over is approved with what a
// person has written for the next, and one that is declined goes on itself.
func TestHandoffAnswers(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, handingOver)
	s := p.serve()
	b := s.open(desktop)
	first := s.start("long", nil)
	b.says("would hand over to a new thread")
	b.press("button", "What the next thread is told")
	b.fill("Change it", "The person says: part two is next.")
	b.press("button", "^Approve$")
	b.says("would hand over to a new thread")
	p.until(func() (bool, string) {
		got := p.show(first)
		return got.Resolved != first && len(got.Waiting) > 0, "the next thread does not ask"
	})
	b.press("button", "^Decline$")
	second := p.show(first).Resolved
	if got := p.untilIs(second, thread.Completed); got.Result != "The person says: part two is next." {
		t.Errorf("the next became %+v", got)
	}
}

const handingOver = `
-- home/.ai/config/agent/coordination.yaml --
continuation: {approval: ask, summary_directive: sum}
-- home/.ai/config/agent/providers/anthropic.yaml --
models:
  claude-haiku-4-5: {context_window: 20000}
-- .ai/directives/sum.md --
'''xml
<directive name="sum" version="1.0.0">
  <metadata><model tier="general" /><limits spend="0.05" /></metadata>
</directive>
'''

Sum it up.
-- .ai/directives/long.md --
'''xml
<directive name="long" version="1.0.0">
  <metadata>
    <model tier="fast" /><limits turns="4" spend="0.40" />
    <permissions><execute><tool>rye.file-system.write</tool></execute></permissions>
  </metadata>
</directive>
'''

Write three parts.
-- model.yaml --
turns:
  - match: {first: Sum it up}
    text: I have written part one.
  - match: {first: part two is next, turn: 2}
    tool_calls: [{name: rye_file_system_write, input: {path: two.txt, content: part two}}]
    usage: {input_tokens: 18500, output_tokens: 100}
  - match: {first: part two is next}
    text: 'The person says: part two is next.'
  - match: {first: Write three parts}
    tool_calls: [{name: rye_file_system_write, input: {path: one.txt, content: part one}}]
    usage: {input_tokens: 19000, output_tokens: 100}
`

// openRow opens a thread by its row in the tree.
func (b *tab) openRow(name string) {
	b.Helper()
	b.press("treeitem", name)
	b.find("heading", name)
}

// TestActions: every button of a thread does what it says, in the store.
func TestActions(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	p.rye("keys", "generate") // for the export
	s := p.serve()
	b := s.open(desktop)
	one, two := s.start("hold", map[string]any{"n": "one"}), s.start("hold", map[string]any{"n": "two"})
	b.openRow("Number one")

	b.press("button", "^Rename$")
	b.fill("^Name", "The first")
	b.press("button", "^Rename$", within{"dialog", "^Rename$"})
	b.find("heading", "^The first$")
	if got := p.show(one).Name; got != "The first" {
		t.Errorf("renamed it is %q", got)
	}

	b.press("button", "^Tell it something$")
	b.fill("^Message", "Hurry up.")
	b.press("button", "^Send$")
	b.says("It is read:")
	b.press("button", "^Close$", within{"dialog", "^Tell it something$"})
	if status, answer := s.ask(http.MethodGet, "/ui/api/threads/"+string(one), s.token, nil); status != 200 || !strings.Contains(string(answer), `"unread_messages":1`) {
		t.Errorf("after a message: %d %s", status, answer)
	}

	// Cancelled, with a receipt of what it has cost.
	b.openRow("Number two")
	b.press("button", "^Cancel$")
	b.press("button", "^Cancel 1 thread$")
	b.says("All have ended\\. Spent: \\$")
	p.untilIs(two, thread.Cancelled)
	b.press("button", "^Close$", within{"dialog", "^Cancel$"})

	// Resumed, the new thread is shown.
	p.model.release()
	p.untilIs(one, thread.Completed)
	b.press("button", "^Resume$")
	b.fill("What it should do next", "What now?")
	b.press("button", "^Resume$", within{"dialog", "^Resume$"})
	b.gone("dialog", ".")
	p.until(func() (bool, string) {
		got := p.show(two)
		return got.Resolved != two && p.show(got.Resolved).Result == "Resumed and done.", "nothing goes on with " + string(two)
	})

	fork := b.fork()
	b.export()
	b.remove(fork)
}

// fork copies the first thread, and returns its copy, which is another row.
func (b *tab) fork() thread.ID {
	b.Helper()
	p := b.place
	b.openRow("^The first")
	b.press("button", "^Fork$")
	b.fill("What the copy should do", "And the copy?")
	b.fill("Name of the copy", "The copy")
	b.press("button", "^Fork$", within{"dialog", "^Fork$"})
	b.find("heading", "^The copy$")
	i := slices.IndexFunc(p.list(), func(s shown) bool { return s.Name == "The copy" })
	if i < 0 {
		b.Fatal("there is no copy")
	}
	fork := p.list()[i].ThreadID
	if got := p.untilIs(fork, thread.Completed); got.Result != "The copy is done." {
		b.Errorf("the copy became %+v", got)
	}
	return fork
}

// export downloads the recording of the thread that is shown.
func (b *tab) export() {
	b.Helper()
	dir := b.TempDir()
	b.noError(proto.BrowserSetDownloadBehavior{
		Behavior: proto.BrowserSetDownloadBehaviorBehaviorAllow, BrowserContextID: b.page.Browser().BrowserContextID, DownloadPath: dir,
	}.Call(b.page.Browser()))
	b.press("button", "^Export$")
	b.says("Exported")
	var recording []byte
	b.place.until(func() (bool, string) {
		files, err := filepath.Glob(filepath.Join(dir, "*.ryetest"))
		if err != nil || len(files) != 1 {
			return false, "nothing is downloaded"
		}
		recording, err = os.ReadFile(files[0])
		return err == nil && len(recording) > 0, "what was downloaded is empty"
	})
	b.place.write(filepath.Join(b.place.dir, ".ai", "tests", "exported.ryetest"), string(recording))
	b.place.rye("test") // it is one that can be run again
}

// remove deletes the thread that is shown, after what would go is shown.
func (b *tab) remove(id thread.ID) {
	b.Helper()
	p := b.place
	before := len(p.list())
	b.press("button", "^Delete…$")
	b.says("1 thread, .* stays in every sum")
	if now := len(p.list()); now != before {
		b.Errorf("a look at what would go has left %d threads of %d", now, before)
	}
	b.press("button", "^Delete 1 thread$")
	b.gone("treeitem", "The copy")
	if slices.ContainsFunc(p.list(), func(s shown) bool { return s.ThreadID == id }) {
		b.Errorf("%s is still there", id)
	}
}

// TestDeletedElsewhere: a thread that is shown is deleted at the command line. The page says
// so, also after its clock has moved on, and offers nothing of the thread any more.
func TestDeletedElsewhere(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	s := p.serve()
	b := s.open(desktop)
	id, other := s.start("greet", map[string]any{"name": "Ada"}), s.start("greet", map[string]any{"name": "Grace"})
	p.untilIs(id, thread.Completed)
	p.untilIs(other, thread.Completed)
	b.press("treeitem", "Said Ada")
	b.find("button", "^Delete…$")
	b.allow("status of 404") // the page asks whether the thread is no more
	p.rye("threads", "delete", string(id), "--yes")
	b.says("This thread was deleted\\.")
	b.gone("button", "^Delete…$")
	var shown string
	b.eval(&shown, `() => new Promise((done) => {
		const tree = document.querySelector("[role=tree]"), was = tree.textContent;
		const look = () => tree.textContent === was ? requestAnimationFrame(look) : done(document.querySelector("article.detail").innerText);
		look();
	})`)
	if !strings.Contains(shown, "This thread was deleted.") || strings.Contains(shown, " ago") {
		t.Errorf("the page says %q", shown)
	}
}

// TestKillAndHandOver: a thread is killed, with its receipt; another hands over with what
// the person has written for the next.
func TestKillAndHandOver(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	s := p.serve()
	b := s.open(desktop)
	killed, parts := s.start("hold", map[string]any{"n": "one"}), s.start("hold", map[string]any{"n": "of parts"})
	b.openRow("Number one")
	b.press("button", "^Kill$")
	b.press("button", "^Kill 1 thread$")
	b.says("All have ended\\. Spent: \\$")
	p.untilIs(killed, thread.Cancelled)
	b.press("button", "^Close$", within{"dialog", "^Kill$"})

	b.openRow("Number of parts")
	b.press("button", "^Hand over$")
	b.fill("What the next thread is told", "Do the rest.")
	b.press("button", "^Hand over$", within{"dialog", "^Hand over$"})
	b.says("It hands over after its present turn\\.")
	b.press("button", "^Close$", within{"dialog", "^Hand over$"})
	p.model.release()
	p.until(func() (bool, string) {
		got := p.show(parts)
		return got.Resolved != "" && p.show(got.Resolved).Result == "The rest is done.", "nobody goes on with " + string(parts)
	})
	b.find("treeitem", "^Number of parts.* completed ") // the chain is one row
}

// TestPressedWhileRowsMove: a row that moves while the button of the mouse is down is the one
// that was meant.
func TestPressedWhileRowsMove(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	s := p.serve()
	b := s.open(desktop)
	s.start("hold", map[string]any{"n": "one"})
	b.noError(b.find("treeitem", "Number one").Hover())
	b.noError(b.page.Mouse.Down(proto.InputMouseButtonLeft, 1))
	s.start("hold", map[string]any{"n": "two"})
	b.find("treeitem", "Number two")
	b.noError(b.page.Mouse.Up(proto.InputMouseButtonLeft, 1))
	b.find("heading", "Number one")
}

// TestTree: threads stand below those that started them; a stop takes those below along.
func TestTree(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, busy)
	s := p.serve()
	b := s.open(desktop)
	parent := s.start("parent", nil)
	b.find("treeitem", "Number below")
	b.find("treeitem", "^Greet Grace.* completed ")
	var levels []string
	b.eval(&levels, `() => ryeTest.all('treeitem', '.').map(e => e.getAttribute('aria-level') + ' ' + e.dataset.key.replace(/-.*/, ''))`)
	slices.Sort(levels)
	if want := []string{"1 parent", "2 greet", "2 hold"}; !slices.Equal(levels, want) {
		t.Errorf("the tree has %q, want %q", levels, want)
	}
	b.openRow("^Look after children")
	b.hit("x")
	b.press("button", "^Cancel 2 threads$")
	b.says("All have ended")
	p.untilIs(parent, thread.Cancelled)
	for _, one := range p.list() {
		if !one.Status.Terminal() {
			t.Errorf("%s is %s", one.ThreadID, one.Status)
		}
	}
}

const failing = `
-- home/.ai/config/agent/resilience.yaml --
retry: {base_seconds: 0.01}
-- .ai/directives/patient.md --
'''xml
<directive name="patient" version="1.0.0">
  <metadata><description>Tries again.</description><model tier="fast" /><limits turns="5" spend="0.1" />
    <retry attempts="3" base="600" /></metadata>
</directive>
'''

Be patient.
-- model.yaml --
turns:
  - error: {status: 500, type: api_error, message: internal}
`

// TestRetries: a thread that has failed and is tried again says when, and a person can
// cancel that.
func TestRetries(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, failing)
	s := p.serve()
	b := s.open(desktop)
	id := s.start("patient", nil)
	b.says("Tried again 20.*HTTP 500")
	b.openRow("Be patient")
	b.press("button", "^Cancel$")
	b.press("button", "^Cancel 1 thread$")
	p.until(func() (bool, string) {
		got := p.show(id)
		return got.Status == thread.Error && got.Retry == nil, "it is still to be tried again"
	})
}
