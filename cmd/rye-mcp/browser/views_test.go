package browser_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// pure are functions of the page's views that need no document: expressions over a module m, and what they give.
var pure = []struct{ name, module, expression, want string }{
	{"ticks", "plots", `m.niceTicks(0, 10, 5)`, `[0,2,4,6,8,10]`},
	{"ticks of cents", "plots", `m.niceTicks(0, 0.0106, 4)`, `[0,0.005,0.01]`},
	{"ticks below zero", "plots", `m.niceTicks(-3, 3, 3)`, `[-2,0,2]`},
	{"whole ticks", "plots", `m.niceTicks(0, 3.2, 4, true)`, `[0,1,2,3]`},
	{"whole ticks of ten", "plots", `m.niceTicks(0, 9.5, 4, true)`, `[0,5]`},
	{"ticks of nothing", "plots", `m.niceTicks(0, 0, 4)`, `[0,0.25,0.5,0.75,1]`},
	{"ticks of nonsense", "plots", `m.niceTicks(NaN, Infinity)`, `[]`},
	{"ticks of time", "plots", `m.elapsedTicks(0, 100000, 4)`, `[0,30000,60000,90000]`},
	{"ticks of days", "plots", `m.elapsedTicks(0, 7 * 86400000, 4).length`, `4`},
	{"steps", "plots", `m.stepPath([{x: 0, y: 1}, {x: 5, y: 3}], v => v, v => v, 9)`, `"M0 1H5V3H9"`},
	{"value of a step line", "plots", `[-1, 0, 4, 5, 99].map(x => m.valueAt([{x: 0, y: 1}, {x: 5, y: 3}], x))`, `[null,1,1,3,3]`},
	{"thinned points keep the highest", "plots", `(() => { const p = Array.from({length: 50000}, (_, x) => ({x, y: x === 31234 ? 9 : x % 7 / 7}));
		const t = m.thinPoints(p); return [t.length <= 1200, t[0].x, t[t.length - 1].x, Math.max(...t.map(q => q.y))]; })()`, `[true,0,49999,9]`},

	{"lanes", "lanes", `m.lanesOf([{thread_id: "a", began: "2026-01-01T00:00:00Z", length_ms: 100, spans: [{kind: "model", start_ms: 0, end_ms: 50}, {kind: "tool", start_ms: 50}]}], Date.parse("2026-01-01T00:00:09Z"))
		.map(l => [l.rows, l.spans.map(s => [s.kind, s.to - s.from, s.open])])`, `[[1,[["model",50,false],["tool",8950,true]]]]`},
	{"a lane without a beginning", "lanes", `m.lanesOf([{thread_id: "a", began: "nonsense", spans: []}], 0)`, `[]`},
	{"rows of what goes on at once", "lanes", `(() => { const s = [{from: 0, to: 10}, {from: 2, to: 4}, {from: 5, to: 6}, {from: 10, to: 11}]; return [m.packRows(s), s.map(x => x.row)]; })()`, `[2,[0,1,1,0]]`},
	{"a call that waits does not work", "lanes", `m.lanesOf([{thread_id: "a", began: "2026-01-01T00:00:00Z", spans: [{kind: "tool", call_id: "c", start_ms: 0, end_ms: 1000}, {kind: "wait", call_id: "c", start_ms: 10, end_ms: 990}]}], 0)[0].spans.map(s => [s.worked, s.waits])`,
		`[[20,true],[0,true]]`},
	{"idle time is folded", "lanes", `(() => { const lanes = m.lanesOf([{thread_id: "a", began: "2026-01-01T00:00:00Z", length_ms: 3610000, spans: [{kind: "model", start_ms: 0, end_ms: 5000}, {kind: "question", start_ms: 5000, end_ms: 3605000}, {kind: "model", start_ms: 3605000, end_ms: 3610000}]}], 0);
		const parts = m.foldIdle(lanes), from = parts[0].from; return [parts.map(p => [p.from - from, p.to - from, p.at, p.upTo, p.folded]), m.foldIdle(lanes, false).length,
			m.timeOf(parts, m.placeOf(parts, from + 3607000)) - from]; })()`,
		`[[[0,5000,0,5000,false],[5000,3605000,5000,5600,true],[3605000,3610000,5600,10600,false]],1,3607000]`},
	{"small spans become one", "lanes", `(() => { const spans = Array.from({length: 10000}, (_, i) => ({kind: "tool", row: 0, from: i, to: i + 1})); const d = m.drawnSpans(spans, t => t / 100, 100); return [d.length, d[0].spans.length]; })()`, `[1,10000]`},
	{"zoom stays within", "lanes", `[m.zoomed([0, 100], 25, 0.5, 100), m.zoomed([0, 50], 0, 9, 100), m.moved([0, 50], 500, 100)]`, `[[12.5,62.5],[0,100],[50,100]]`},

	{"flame", "flame", `(() => { const root = m.flameTree([{id: "a", title: "a", depth: 0, spans: [{kind: "model", name: "x", worked: 10, from: 0, to: 10, spend: 1}, {kind: "model", name: "x", worked: 5, from: 20, to: 25, spend: 1}]},
			{id: "b", title: "b", depth: 1, spans: [{kind: "tool", name: "t", worked: 5, from: 0, to: 5}]}, {id: "c", title: "c", depth: 1, spans: []}]);
		return [root.time, root.money, root.kids.map(k => [k.name, k.count, k.time]), m.flameLayout(root, "time", 200).map(b => [b.node.name, b.depth, b.left, b.width])]; })()`,
		`[20,2,[["x",2,15],["b",1,5],["c",1,0]],[["a",0,0,200],["x",1,0,150],["b",1,150,50],["t",2,150,50]]]`},
	{"flame of nothing", "flame", `m.flameTree([])`, `null`},

	{"diff", "diff", `m.parseDiff("diff --git a/x.go b/x.go\nindex 1..2 100644\n--- a/x.go\n+++ b/x.go\n@@ -1,3 +1,3 @@ func f\n a\n--- old\n+++ new\n c\n").files.map(f => [f.path, f.change, f.added, f.removed, f.hunks[0].about, f.hunks[0].lines.map(l => [l.kind, l.old, l.now, l.text])])`,
		`[["x.go","M",1,1,"func f",[[" ",1,1,"a"],["-",2,0,"-- old"],["+",0,2,"++ new"],[" ",3,3,"c"]]]]`},
	{"diff of new, deleted, renamed and binary files", "diff", `m.parseDiff("diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\ndiff --git \"a/\\303\\244 b\" \"b/\\303\\244 b\"\ndeleted file mode 100644\n--- \"a/\\303\\244 b\"\n+++ /dev/null\n@@ -1 +0,0 @@\n-y\ndiff --git a/o b/p\nrename from o\nrename to p\ndiff --git a/b.png b/b.png\nBinary files a/b.png and b/b.png differ\n").files.map(f => [f.path, f.change, f.from, f.binary, f.added, f.removed])`,
		`[["n","A","",false,1,0],["ä b","D","",false,0,1],["p","R","o",false,0,0],["b.png","M","",true,0,0]]`},
	{"no diff", "diff", `m.parseDiff("hello\n@@ -1 +1 @@\n+x\n\u0000")`, `{"files":[],"truncated":false}`},
	{"a diff that is too long", "diff", `(() => { const d = m.parseDiff("--- a/x\n+++ b/x\n@@ -0,0 +1,9000 @@\n" + "+l\n".repeat(9000), 100); return [d.truncated, d.files[0].added, d.files[0].hunks[0].lines.length]; })()`, `[true,9000,100]`},
	{"changed part of a line", "diff", `[m.changedPart("say hello now", "say goodbye now"), m.changedPart("abc", "xyz")]`, `[{"start":4,"endA":9,"endB":11},null]`},
	{"file names", "diff", `["a/b.txt", "..\\x", "<img onerror=1>", "", "x".repeat(300)].map(n => m.fileNameOf(n).length < 121 && m.fileNameOf(n)).slice(0, 4)`, `["a-b.txt","x","img-onerror-1-","file"]`},

	{"lines of two texts", "compare", `m.lineDiff("a\nb\nc\nd", "a\nx\nc\nd\ne").map(l => l.kind + l.text)`, `[" a","-b","+x"," c"," d","+e"]`},
	{"lines of nothing", "compare", `[m.lineDiff("", ""), m.lineDiff("", "a").length]`, `[[],1]`},
	{"comparison", "compare", `m.compareRows({status: "completed", model: "m", cost: {turns: 1, spend: 0.5}, tools: {t: {calls: 2, failed: 1}}, inputs: {a: "x"}}, {status: "completed", model: "n", cost: {turns: 1, spend: 0.5}, tools: {}, inputs: {a: "x"}})
		.map(r => [r.name, r.same])`, `[["State",true],["Model",false],["Turns",true],["Spent",true],["Input: a",true],["Tool: t",false]]`},

	{"a call and its result are one item", "events", `m.foldEvents([{seq: 1, event_type: "tool_call_start", payload: {call_id: "c", tool: "t", input: {path: "x"}}}, {seq: 2, event_type: "checkpoint", payload: {}},
		{seq: 3, event_type: "tool_call_result", payload: {call_id: "c", tool: "t", text: "no", is_error: true}}]).map(i => [i.kind, i.title, i.failed, i.seq, i.upTo])`, `[["call","t",true,1,3]]`},
	{"a result alone", "events", `m.foldEvents([{seq: 3, event_type: "tool_call_result", payload: {call_id: "c", tool: "t", text: "ok"}}]).map(i => [i.kind, i.done, i.result.text])`, `[["call",true,"ok"]]`},
	{"reasoning belongs to its answer", "events", `m.foldEvents([{seq: 1, event_type: "cognition_reasoning", payload: {text: "hm"}}, {seq: 2, event_type: "cognition_out", payload: {blocks: [{type: "text", text: "yes"}]}}]).map(i => [i.kind, i.reasoning, i.text])`, `[["answer","hm","yes"]]`},
	{"an event of a later version", "events", `m.foldEvents([{seq: 1, event_type: "brand_new", payload: {a: 1}}, {seq: 2, event_type: "cognition_out"}, {seq: 3, event_type: "constructor"}]).map(i => i.kind)`, `["other","answer","other"]`},
	{"what a call is about", "events", `[{path: "a.go"}, {item_id: "rye/bash", parameters: {command: "ls"}}, "{\"query\": \"x\"}", "{broken", null, 7].map(i => m.callGlance(i))`, `["a.go","rye/bash ls","x","{broken","","7"]`},
	{"why a call failed", "events", `[m.failureLine('{"error":{"code":"x","message":"no such \\"file\\""}}'), m.failureLine("\n\nboom\nmore")]`, `["no such \"file\"","boom"]`},

	{"what a thread wrote", "written", `m.writtenFiles(m.writingCalls([{seq: 1, event_type: "tool_call_start", payload: {turn: 1, call_id: "a", tool: "rye_file_system_write", input: {path: "x", content: "one\ntwo\n"}}},
		{seq: 2, event_type: "tool_call_result", payload: {call_id: "a", text: "{\"files\":[{\"path\":\"x\",\"created\":true}]}"}}, {seq: 3, event_type: "tool_call_start", payload: {turn: 2, call_id: "b", tool: "rye_file_system_write", input: {path: "x", content: "one\n2\n"}}},
		{seq: 4, event_type: "tool_call_result", payload: {call_id: "b", text: "{}"}}, {seq: 5, event_type: "tool_call_start", payload: {turn: 3, call_id: "c", tool: "rye_file_system_write", input: {path: "y", content: "no"}}},
		{seq: 6, event_type: "tool_call_result", payload: {call_id: "c", text: "refused", is_error: true}}])).map(f => [f.path, f.change, f.added, f.removed, f.hunks.length])`, `[["x","A",3,1,2]]`},
	{"bytes that are no text", "artifacts", `[m.looksBinary(new Uint8Array([137, 80, 0])), m.looksBinary(new TextEncoder().encode("grüße")), m.looksBinary(new Uint8Array(0))]`, `[true,false,false]`},
	{"names of downloads", "artifacts", `[m.nameIn('attachment; filename="a-b.ryetest"'), m.nameIn('attachment; filename="../../x"'), m.nameIn(null)]`, `["a-b.ryetest","x",""]`},
	{"verdicts", "receipt", `[m.verdictWords({verified: true, transcript: {turns: 2, bytes: 10, checkpoints: 1, signed_bytes: 10}}, "strict").good, m.verdictWords({verified: false, first_bad_turn: 3, findings: [{}], transcript: {}}).facts.some(f => f.includes("Up to turn 2")), m.verdictWords({verified: false, transcript: {}}).good]`, `[true,true,false]`},
	{"tokens of many turns", "spend", `m.turnTokens(Array.from({length: 500}, (_, i) => ({kind: "model", turn: i + 1, tokens: {input: 1, output: 2}}))).map(b => b.title).slice(0, 2)`, `["Turns 1 to 9","Turns 10 to 18"]`},
	{"names that objects have", "compare", `m.compareRows({outputs: {}, tools: {constructor: {calls: 1}}, inputs: {__proto__x: 1, toString: "a"}}, {outputs: {}, tools: {}, inputs: {}}).map(r => [r.name, r.a, r.b])`,
		`[["Input: __proto__x","1","–"],["Input: toString","a","–"],["Tool: constructor","1\u202fcall","–"]]`},
	{"directives with names that objects have", "costs", `m.costBars({bucket: "day", at: ["2026-01-01T00:00:00Z"], lines: [{key: "constructor", spend: [0]}, {key: "__proto__", spend: [2]}]}, "spend").map(b => [b.parts.constructor ?? 0, b.parts["__proto__"]])`, `[[0,2]]`},
	{"time before anything happened", "costs", `(() => { const n = 30, line = i => Array.from({length: n}, (_, k) => k === i ? 1 : 0); const l = {key: "a", spend: line(25), turns: line(25), errors: line(25), threads: line(25)};
		const s = m.dropEmpty({at: Array.from({length: n}, (_, i) => i), lines: [l], total: l}); return [s.at[0], s.total.spend]; })()`, `[23,[0,0,1,0,0,0,0]]`},
	{"costs over time", "costs", `m.costBars({bucket: "hour", at: ["2026-01-01T00:00:00+01:00", "2026-01-01T01:00:00+01:00", "2026-01-01T02:00:00+01:00"], lines: [{key: "a", spend: [1, 2, 0]}, {key: "b", spend: [0, 0, 0]}]}, "spend", 2).map(b => [b.label, b.title, b.parts])`,
		`[["00:00","2026-01-01 00:00 to 2026-01-01 01:00",{"a":3}],["02:00","2026-01-01 02:00",{}]]`},
}

// TestViewsCompute: what the views compute without a document.
func TestViewsCompute(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	b := newPlace(t, busy).serve().open(desktop)
	for _, test := range pure {
		var got, want any
		b.eval(&got, fmt.Sprintf(`async () => { const m = await import('/ui/%s.js'); return %s; }`, test.module, test.expression))
		if err := json.Unmarshal([]byte(test.want), &want); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if !reflect.DeepEqual(got, want) {
			shown, _ := json.Marshal(got)
			t.Errorf("%s: %s\n got %s\nwant %s", test.name, test.expression, shown, test.want)
		}
	}
}

// viewed is a project whose threads leave something to look at.
const viewed = `
-- .ai/directives/write.md --
'''xml
<directive name="write" version="1.0.0">
  <metadata><description>Writes a poem.</description><model tier="fast" /><limits turns="6" spend="0.20" />
    <permissions><execute><tool>rye.file-system.*</tool></execute></permissions></metadata>
  <inputs><input name="about" type="string" required="true">What.</input></inputs>
</directive>
'''

Write about {input:about}.
-- .ai/directives/lead.md --
'''xml
<directive name="lead" version="1.0.0">
  <metadata><description>Lets others write.</description><model tier="fast" /><limits turns="6" spend="0.50" spawns="4" />
    <permissions><execute><directive>write</directive><tool>rye.file-system.*</tool></execute></permissions></metadata>
</directive>
'''

Let others write.
-- model.yaml --
turns:
  - match: {first: Let others write, turn: 1}
    text: I let two write. <img src=x onerror=alert(1)>
    tool_calls:
      - {name: rye_execute, input: {item_id: write, thread: fork, parameters: {about: rain}}}
      - {name: rye_execute, input: {item_id: write, thread: fork, parameters: {about: "<img src=x onerror=alert(2)>"}}}
  - match: {first: Let others write}
    text: "Both wrote. \e[31mred\e[0m \u202egnp.exe"
  - match: {first: Write about rain, turn: 1}
    reasoning: A poem needs rhyme and a needle.
    tool_calls:
      - {name: rye_file_system_write, input: {path: "<b>poem</b>.txt", content: "one fish\ntwo fish\n"}}
      - {name: rye_file_system_read, input: {path: no-such-file}}
  - match: {first: Write about}
    text: It is written.
`

// TestViewsOfThread: every view of a thread shows what the thread did, and what it was told by models and files is text.
func TestViewsOfThread(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, viewed)
	p.rye("keys", "generate")
	p.rye("sign", "--type", "directive", "**")
	s := p.serve()
	p.untilIs(s.start("lead", nil), thread.Completed)
	b := s.open(desktop)
	b.openRow("^Let others write")
	b.says("I let two write. <img src=x onerror=alert\\(1\\)>")
	b.says("Both wrote. \u241b\\[31mred\u241b\\[0m \u27e8U\\+202E\u27e9gnp.exe")
	b.press("button", "^Result", within{"article", "rye_execute"})

	b.press("tab", "^Timeline$")
	b.says("3\\s+threads in")
	b.press("button", "^As a table$")
	b.find("row", "model call")
	b.find("row", "wait for other threads")
	b.press("button", "^As a table$")
	b.eval(nil, `() => document.querySelector('.timeline').focus()`)
	b.hit("End")
	b.says("end: completed")
	b.hit("ArrowDown", "Home", "ArrowRight", "+", "+", "0")
	b.says("Open write-")

	b.press("tab", "^Flame$")
	b.says("All in all")
	b.press("button", "^By money$")
	b.press("button", "^As a table$")
	b.find("row", "model call")

	b.press("tab", "^Spend$")
	b.says("of the limit of \\$0.50")
	b.find("heading", "^Tokens of each turn$")

	b.press("tab", "^Verify$")
	b.says("This thread verifies")
	b.press("button", "^Show the receipt$")
	b.says("SHA-256 of the directive")

	b.openRow("^Write about rain")
	b.press("tab", "^Transcript$")
	b.says("no-such-file.*failed")
	b.press("button", "^Reasoning")
	b.says("a needle")
	b.press("tab", "^Files$")
	b.says("<b>poem</b>.txt")
	b.says("two fish")
	b.press("tab", "^Compare$")
	b.press("button", "^write-[0-9]", within{"tabpanel", ""})
	b.says("lines? of [0-9]+ differ")
	b.says("Input: about")
	var elements int
	b.eval(&elements, `() => document.querySelectorAll('img, b, a[href]:not([href^="#"]):not([download])').length`)
	if elements != 0 {
		t.Errorf("%d elements were made of what a model said", elements)
	}
}

// longThread makes in the page an API of a thread whose transcript has a number of events, none of which it holds,
// and opens the view of it: events are made when they are asked for.
const longThread = `async (events, size) => {
	const {transcriptView} = await import('/ui/transcript.js');
	const line = 'A line of <img src=x onerror=alert(1)> text.\\n'.repeat(Math.ceil(size / 44));
	const at = seq => ({seq, thread_id: 'x', timestamp: new Date(1.7e12 + seq).toISOString(), ...(seq % 2 ?
		{event_type: 'cognition_out', payload: {turn: seq, blocks: [{type: 'text', text: 'Answer ' + seq + '.'}], stop_reason: 'end'}} :
		{event_type: 'tool_call_result', payload: {call_id: 'c' + seq, tool: 'tool', text: 'needle' + seq + ' ' + line, duration_ms: 1}})});
	const all = (from, to) => Array.from({length: Math.max(0, to - from + 1)}, (_, i) => at(from + i));
	const page = 100;
	const api = {skew: 0, stream: (path, onLine) => { globalThis.streamed = onLine; }, get: async path => {
		const q = new URL(path, location.origin).searchParams, find = q.get('q'), after = Number(q.get('after') || 0);
		if (find) {
			const seq = Number(find.slice(6)), hit = find.startsWith('needle') && seq > after && seq <= events && seq % 2 === 0;
			return {events: hit ? [at(seq)] : [], first: after + 1, next: events, at_start: false, at_end: true};
		}
		if (q.has('before')) {
			const before = Number(q.get('before')) < 0 ? events + 1 : Number(q.get('before')), first = Math.max(1, before - page);
			return {events: all(first, before - 1), first, next: before - 1, at_start: first === 1, at_end: before > events};
		}
		const last = Math.min(events, after + page);
		return {events: all(after + 1, last), first: after + 1, next: last, at_start: after === 0, at_end: last === events};
	}};
	const view = transcriptView({api, id: 'x', row: () => ({}), subscribe: () => () => {}, say() {}});
	document.body.replaceChildren(view.el);
	globalThis.box = document.querySelector('.transcript');
	globalThis.held = () => ({rows: document.querySelectorAll('.event').length, nodes: document.querySelectorAll('.transcript *').length, state: document.querySelector('.transcript-state').textContent});
	globalThis.calm = () => new Promise(done => { const look = () => box.hasAttribute('aria-busy') ? requestAnimationFrame(look) : done(); requestAnimationFrame(() => requestAnimationFrame(look)); });
	await ryeTest.until(() => document.querySelector('.event') ?? undefined);
	await calm();
}`

// TestViewsLongTranscript: of a transcript of 60 MB a bounded part is held, whichever way one reads, what is looked at stays
// where it is when more is loaded, and find reaches what is not held.
func TestViewsLongTranscript(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	b := newPlace(t, busy).serve().open(desktop)
	b.says("No threads|no threads")
	b.eval(nil, longThread, 30000, 4000)
	b.says("of 30,000")
	var up struct{ Rows, Nodes, Jumps int }
	b.eval(&up, `async () => {
		let rows = 0, nodes = 0, jumps = 0;
		for (let i = 0; i < 80; i++) {
			box.scrollTop -= 2500;
			const top = box.scrollTop, row = [...document.querySelectorAll('.event')].find(e => e.offsetTop + e.offsetHeight > top), seq = row.dataset.seq, by = row.offsetTop - box.scrollTop;
			await calm();
			const same = document.querySelector('.event[data-seq="' + seq + '"]');
			if (!same || Math.abs(same.offsetTop - box.scrollTop - by) > 2) jumps++;
			rows = Math.max(rows, held().rows);
			nodes = Math.max(nodes, held().nodes);
		}
		return {rows, nodes, jumps};
	}`)
	if up.Rows > 900 || up.Nodes > 12000 || up.Jumps > 0 {
		t.Errorf("reading backwards: at most %d rows and %d nodes at once, and it jumped %d times", up.Rows, up.Nodes, up.Jumps)
	}
	b.press("button", "^Go to the first event$")
	b.says("Event 1 to")
	b.fill("^Find in this transcript$", "needle20000")
	b.hit("Enter")
	b.says("In event 20,?000")
	b.says("needle20000")
	b.press("button", "^Go to the last event")
	b.says("to 30,000 of 30,000")
}

// TestViewsManyDeltas: an answer that arrives in 10 000 pieces a second is drawn as it grows, the page answers meanwhile, and a reader
// who scrolls up is left where they are.
func TestViewsManyDeltas(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	b := newPlace(t, busy).serve().open(desktop)
	b.says("No threads|no threads")
	b.eval(nil, longThread, 50, 100)
	var got struct {
		Rows, Nodes, Frames int
		Tail, Follows       string
		Moved               float64
	}
	b.eval(&got, `async () => {
		let seq = 50, frames = 0;
		const second = async () => {
			for (let batch = 0; batch < 50; batch++) {
				streamed({events: Array.from({length: 200}, () => ({seq: ++seq, timestamp: '', event_type: 'token_delta', payload: {turn: 99, type: 'text', text: 'word' + seq + (seq % 9 ? ' ' : '\n')}}))});
				await new Promise(requestAnimationFrame);
				frames++;
			}
		};
		for (let i = 0; i < 4; i++) await second();
		const tail = document.querySelector('.e-live').textContent.slice(-9).trim();
		box.scrollTop -= 600;
		await new Promise(requestAnimationFrame);
		const before = box.scrollTop;
		await second();
		const moved = Math.abs(box.scrollTop - before), follows = document.querySelector('[aria-pressed]').getAttribute('aria-pressed');
		streamed({events: [{seq: ++seq, timestamp: '', event_type: 'cognition_out', payload: {turn: 99, blocks: [{type: 'text', text: 'That is all.'}], stop_reason: 'end'}}]});
		await calm();
		return {...held(), frames, tail, moved, follows};
	}`)
	b.says("That is all")
	if got.Tail != "word40050" || got.Follows != "false" || got.Moved > 2 || got.Rows > 60 || got.Nodes > 3000 {
		t.Errorf("%+v", got)
	}
	if b.eval(&got.Rows, `() => document.querySelectorAll('.e-live, .transcript img').length`); got.Rows != 0 {
		t.Errorf("%d pieces are left of the answer that is there", got.Rows)
	}
}
