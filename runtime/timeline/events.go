package timeline

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
)

// The keys of open spans of which there is one at a time. Those of others begin with
// another letter, and are no longer than what is shown of an id.
const (
	modelKey   = "model"
	backoffKey = "backoff"
	summaryKey = "summary"
)

func callKey(turn int, id string) string { return "c" + strconv.Itoa(turn) + " " + shown(id) }
func waitKey(turn int, id string) string { return "w" + strconv.Itoa(turn) + " " + shown(id) }
func hookKey(id string) string           { return "h " + shown(id) }
func questionKey(id string) string       { return "q " + shown(id) }

// started takes the times of the row from an event that has them, for where there is no
// row.
func (b *Builder) started(p transcript.ThreadStarted) {
	b.saidQueued, b.saidAdmitted = p.QueuedAt, p.AdmittedAt
}

// work closes what only lasts until the thread goes on.
func (b *Builder) work(at int64) {
	b.finish(backoffKey, at, "")
	b.finish(summaryKey, at, "")
}

func (b *Builder) request(seq int64, p transcript.CognitionRequest) {
	b.judged = judged{}
	sent := bounded(p.SentMS, b.now)
	b.work(b.now - sent)
	b.closeAs(modelKey, "broken off")
	b.begin(modelKey, Span{
		Kind: Model, Seq: seq, Turn: p.Turn, Name: p.Model, Bytes: p.Bytes, Attempt: p.Attempt, SentMS: sent,
	}, b.now-sent)
}

// piece is a part of an answer. Transcripts of older versions have no request.
func (b *Builder) piece(seq int64) {
	s, asking := b.open[modelKey]
	if !asking {
		b.work(b.now)
		b.begin(modelKey, Span{Kind: Model, Seq: seq}, b.ready)
		s = b.open[modelKey]
	}
	if s.FirstMS == nil {
		first := b.now - s.StartMS
		s.FirstMS = &first
		b.open[modelKey] = s
	}
}

// modelCall is the open call of the model, or one of which nothing was told until it was
// over: it began so long ago, or else after what came before.
func (b *Builder) modelCall(seq int64, took int64) Span {
	if s, asking := b.open[modelKey]; asking {
		delete(b.open, modelKey)
		b.work(b.now)
		return s
	}
	start := b.ready
	if took > 0 {
		start = b.now - took
	}
	start = bounded(start, b.now)
	b.work(start)
	return Span{Kind: Model, Seq: seq, StartMS: start}
}

func (b *Builder) answer(seq int64, p transcript.CognitionOut) {
	if b.wasJudged(p) {
		return
	}
	s := b.modelCall(seq, p.ModelMS)
	s.Turn, s.Detail, s.Spend = p.Turn, string(p.StopReason), max(0, p.Spend)
	if s.Name == "" {
		s.Name = p.Model
	}
	u := p.Usage
	s.Tokens = &Tokens{max(0, u.InputTokens), max(0, u.OutputTokens), max(0, u.CacheReadTokens), max(0, u.CacheWriteTokens)}
	first(&s, p.FirstMS)
	b.add(s, b.now)
	b.used(p.Turn, p.Spend, s.Tokens.sum())
}

// judged is a failure that may be an answer, which is taken all the same.
type judged struct {
	turn   int // 0: there is none
	spend  thread.Micros
	tokens int64
}

// wasJudged reports whether an answer is that of the call which was put on record as a
// failure just before. Events of older versions do not say what that has cost.
func (b *Builder) wasJudged(p transcript.CognitionOut) bool {
	was := b.judged
	b.judged = judged{}
	if _, asking := b.open[modelKey]; asking || was.turn == 0 || was.turn != p.Turn {
		return false
	}
	b.used(p.Turn, p.Spend-was.spend, p.Usage.ContextTokens()-was.tokens)
	return true
}

// first takes over when the answer began, as the caller of the model has measured it.
func first(s *Span, ms *int64) {
	if ms != nil {
		at := thread.Sum(max(0, *ms), s.SentMS)
		s.FirstMS = &at
	}
}

func (t *Tokens) sum() int64 { return thread.Sum(t.Input, t.Output, t.CacheRead, t.CacheWrite) }

// failed is a call of the model that has failed, or another problem, which is no time.
func (b *Builder) failed(seq int64, p transcript.ErrorClassified) {
	if p.Attempt == 0 && p.Model == "" {
		b.settling = b.settling || p.Category == transcript.TornCategory
		return
	}
	s := b.modelCall(seq, p.ModelMS)
	s.Turn, s.Detail, s.Error, s.Spend = p.Turn, p.Category, p.Message, max(0, p.Spend)
	if s.Name == "" {
		s.Name = p.Model
	}
	if s.Attempt == 0 {
		s.Attempt = p.Attempt
	}
	if s.Error == "" {
		s.Error = p.Category
	}
	b.add(s, b.now)
	b.used(p.Turn, p.Spend, max(0, p.Tokens))
	b.judged = judged{max(0, p.Turn), max(0, p.Spend), max(0, p.Tokens)}
}

func (b *Builder) retry(seq int64, p transcript.Retry) {
	b.judged = judged{}
	b.begin(backoffKey, Span{Kind: Backoff, Seq: seq, Turn: p.Turn, Name: p.Reason, Detail: p.Model, Attempt: p.Attempt}, b.now)
}

func (b *Builder) call(seq int64, p transcript.ToolCallStart) {
	b.work(b.now)
	s := Span{Kind: Tool, Seq: seq, Turn: p.Turn, Name: p.Tool, CallID: p.CallID, Detail: about(p.Input)}
	if s.Detail == waitThreads {
		s.Kind = Wait
	}
	b.begin(callKey(p.Turn, p.CallID), s, b.now)
}

// about is the operation of the orchestrator, or the item, that a call names; empty where
// it names none.
func about(input transcript.Input) string {
	const most = 64 << 10
	type operation struct {
		Operation string `json:"operation"`
	}
	var what struct {
		operation
		ItemID     string          `json:"item_id"`
		Parameters json.RawMessage `json:"parameters"`
	}
	if len(input) > most || json.Unmarshal(input, &what) != nil {
		return ""
	}
	var inner operation
	if json.Unmarshal(what.Parameters, &inner) == nil && inner.Operation == waitThreads {
		return waitThreads
	}
	return cmp.Or(what.Operation, what.ItemID)
}

// waitThreads is the operation by which a thread waits for others.
const waitThreads = "wait_threads"

func (b *Builder) result(seq int64, p transcript.ToolCallResult) {
	key := callKey(p.Turn, p.CallID)
	s, known := b.open[key]
	delete(b.open, key)
	if !known {
		s = Span{Kind: Tool, Seq: seq, Name: p.Tool, CallID: p.CallID, StartMS: bounded(b.now-max(0, p.DurationMS), b.now)}
	}
	s.Turn, s.Spend = p.Turn, max(0, p.Spend)
	if p.IsError {
		s.Error = faultText(p.Text)
	}
	wait := waitKey(p.Turn, p.CallID)
	if w, waited := b.open[wait]; waited && !slices.Contains(p.Ended, w.Child) {
		delete(b.open, wait) // it was started and left to itself
	}
	b.finish(wait, b.now, "")
	b.add(s, b.now)
	b.used(p.Turn, p.Spend, 0)
}

// faultText is the message of a failure as the model was told it.
func faultText(text string) string {
	var told struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte(text), &told) == nil && told.Error != "" {
		return told.Error
	}
	if text == "" {
		return "failed"
	}
	return text
}

func (b *Builder) child(seq int64, p transcript.ChildStarted) {
	w := Span{Kind: Wait, Seq: seq, Name: p.Directive, CallID: p.CallID, Child: p.ThreadID}
	switch {
	case p.CallID != "":
		key, s, known := b.callOf(p.CallID)
		if !known {
			return
		}
		s.Child = thread.ID(shown(string(p.ThreadID)))
		b.open[key] = s
		w.Turn = s.Turn
		b.begin(waitKey(s.Turn, p.CallID), w, b.now)
	case p.HookID != "":
		b.begin(hookKey(p.HookID), w, b.now)
	default:
		b.begin(summaryKey, w, b.now)
	}
}

// callOf is the newest open call of that id which has started no child yet.
func (b *Builder) callOf(id string) (key string, newest Span, known bool) {
	for k, s := range b.open {
		if s.Kind == Tool && s.CallID == shown(id) && s.Child == "" && (!known || s.Seq > newest.Seq) {
			key, newest, known = k, s, true
		}
	}
	return key, newest, known
}

func (b *Builder) hook(seq int64, p transcript.HookFired) {
	s := Span{
		Kind: Hook, Seq: seq, Name: p.HookID, Detail: p.Event, Error: p.Error, Spend: max(0, p.Spend),
		StartMS: bounded(b.now-max(0, p.DurationMS), b.now),
	}
	if w, waited := b.open[hookKey(p.HookID)]; waited {
		s.Child = w.Child
		s.StartMS = min(s.StartMS, w.StartMS)
	}
	b.finish(hookKey(p.HookID), b.now, "")
	b.add(s, b.now)
	b.used(0, p.Spend, 0)
}

func (b *Builder) asked(seq int64, p transcript.QuestionAsked) {
	s := Span{Kind: Question, Seq: seq, Name: p.Code, Detail: p.Text}
	if thread.QuestionKind(p.Kind) == thread.AskHandoff {
		s.Kind = Approval
	}
	b.begin(questionKey(p.QuestionID), s, b.now)
}

func (b *Builder) told(p transcript.QuestionAnswered) {
	b.closeAs(questionKey(p.QuestionID), string(p.Decision)+" by "+p.By)
}

// over is the end of the thread. Of one that died nobody knows when: what it was doing
// is shown until the last event before, and its end is when that was found.
func (b *Builder) over(e thread.Event, p transcript.Ended) {
	if b.end != nil {
		return
	}
	s := Span{Kind: End, Seq: e.Seq, Name: string(p.Outcome.State), StartMS: max(b.worked, b.first)}
	until := b.now
	if o := p.Outcome.Error; o != nil {
		s.Error = o.Message
		if o.Code == thread.CodeDied {
			until, s.StartMS = b.worked, b.now
		}
	}
	b.closeAll(until)
	if spend, tokens := p.Cost.Spend, p.Cost.Tokens(); spend > b.spend || tokens > b.tokens {
		b.spend, b.tokens = max(b.spend, spend), max(b.tokens, tokens)
		b.point(max(0, p.Cost.Turns))
	}
	b.end = &s
}

// unfinished is said of what the end of the thread has broken off.
const unfinished = "did not end before the thread"

func (b *Builder) closeAll(until int64) {
	keys := make([]string, 0, len(b.open))
	for key := range b.open {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		why := unfinished
		if k := b.open[key].Kind; k == Backoff || k == Wait {
			why = ""
		}
		b.finish(key, until, why)
	}
}
