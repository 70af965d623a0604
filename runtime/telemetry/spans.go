package telemetry

import (
	"errors"
	"io/fs"
	"iter"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/timeline"
)

// maxSpans is how many spans a thread has at most; beyond that those next to each other
// are made one.
const maxSpans = 10_000

// Thread is what the spans of a thread that has ended are made of.
type Thread struct {
	Place  string // id of the place that the project has
	Record thread.Record
	// Root is the thread that everything goes back to: without a parent, and the first of
	// its chain. Parent is the span of another program that it was started in; one
	// without ids is none.
	Root   thread.ID
	Parent thread.Traceparent
	// Children are the rows of threads below it.
	Children []thread.Record
	Events   iter.Seq2[thread.Event, error] // of its transcript
	// Content adds what was said and done, as the transcript has it.
	Content bool
}

// trace is the id of the trace that the thread belongs to.
func (t Thread) trace() string {
	if t.Parent.Trace != "" {
		return t.Parent.Trace
	}
	return traceID(t.Place, t.Root)
}

// Spans are those of a thread. The first one is the whole of it.
func Spans(t Thread) ([]Span, error) {
	b := builder{Thread: t, trace: t.trace(), self: threadSpan(t.Place, t.Record.ThreadID)}
	line := timeline.New(timeline.FactsOf(t.Record))
	line.Limit(maxSpans)
	events := t.Events
	if t.Content {
		b.said = &content{}
		events = b.said.reading(events)
	}
	if err := line.Read(events); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	b.add(line.Timeline())
	return b.spans, nil
}

// builder makes the spans of one thread.
type builder struct {
	Thread
	trace, self string
	began       time.Time
	claimed     map[thread.ID]bool // children whose parent there is
	said        *content           // nil: nothing of it is told
	spans       []Span
}

func (b *builder) add(line timeline.Timeline) {
	b.began, b.claimed = line.Began, map[thread.ID]bool{}
	b.spans = append(b.spans, b.whole(line))
	for _, s := range line.Spans {
		if s.Child != "" && s.Kind != timeline.Wait {
			b.claimed[s.Child] = true
		}
	}
	taken := map[thread.ID]bool{}
	for _, s := range line.Spans {
		if s.Kind == timeline.End || s.Kind == timeline.Tool && s.Seq == 0 {
			continue // the whole says it; that of a run of a tool is one itself
		}
		one := b.span(s, line.LengthMS)
		if b.startedHere(s) && !taken[s.Child] {
			taken[s.Child], b.claimed[s.Child] = true, true
			one.SpanID = startSpan(b.Place, b.Record.ThreadID, s.Child)
		}
		b.spans = append(b.spans, one)
	}
	b.starts(taken)
}

// startedHere reports whether a span is the one that a child has for its parent: the
// call or hook that has started it, else the wait for it.
func (b *builder) startedHere(s timeline.Span) bool {
	if s.Child == "" || s.Count > 1 {
		return false
	}
	return s.Kind != timeline.Wait || !b.claimed[s.Child]
}

// starts gives a parent to the children that no span tells of.
func (b *builder) starts(taken map[thread.ID]bool) {
	for _, child := range b.Children {
		if taken[child.ThreadID] || child.ContinuationOf != "" {
			continue
		}
		at := nanosOf(child.CreatedAt)
		var a attributes
		a.text("rye.child_thread_id", string(child.ThreadID))
		b.spans = append(b.spans, Span{
			TraceID: b.trace, SpanID: startSpan(b.Place, b.Record.ThreadID, child.ThreadID), ParentSpanID: b.self,
			Name: strings.TrimSpace("rye.start_thread " + child.Directive), Kind: kindInternal, Start: at, End: at, Attributes: a,
		})
	}
}

// parentOf is the span that the whole of the thread is below, and the link to the thread
// that it continues.
func (b *builder) parentOf() (parent string, links []Link) {
	r := b.Record
	if r.ContinuationOf != "" {
		var a attributes
		a.text("rye.link", "continues")
		links = []Link{{TraceID: b.trace, SpanID: threadSpan(b.Place, r.ContinuationOf), Attributes: a}}
		first := r.ChainRootID
		if first == "" {
			first = r.ContinuationOf
		}
		return threadSpan(b.Place, first), links
	}
	if r.ParentID != "" {
		return startSpan(b.Place, r.ParentID, r.ThreadID), nil
	}
	return b.Parent.Span, nil
}

// whole is the span of the thread.
func (b *builder) whole(line timeline.Timeline) Span {
	r := b.Record
	parent, links := b.parentOf()
	end := r.CompletedAt
	if last := line.Began.Add(time.Duration(line.LengthMS) * time.Millisecond); end.Before(last) {
		end = last
	}
	s := Span{
		TraceID: b.trace, SpanID: b.self, ParentSpanID: parent, Links: links, Kind: kindInternal,
		Start: nanosOf(line.Began), End: nanosOf(end),
	}
	var a attributes
	switch r.Kind {
	case thread.KindTool:
		s.Name = "execute_tool " + r.Directive
		a.text("gen_ai.operation.name", "execute_tool")
		a.text("gen_ai.tool.name", r.Directive)
	case thread.KindSet:
		s.Name = "invoke_workflow " + r.Directive
		a.text("gen_ai.operation.name", "invoke_workflow")
		a.text("gen_ai.workflow.name", r.Directive)
	default:
		s.Name = "invoke_agent " + r.Directive
		a.text("gen_ai.operation.name", "invoke_agent")
		a.text("gen_ai.agent.name", r.Directive)
		a.model(r.Model)
		a.usage(timeline.Tokens{
			Input: r.Cost.InputTokens, Output: r.Cost.OutputTokens, CacheRead: r.Cost.CacheReadTokens, CacheWrite: r.Cost.CacheWriteTokens,
		})
	}
	b.thread(&a)
	s.Status = b.status(&a)
	s.Attributes = a
	return s
}

// thread are the attributes of the thread that no convention has.
func (b *builder) thread(a *attributes) {
	r := b.Record
	conversation := r.ChainRootID
	if conversation == "" {
		conversation = r.ThreadID
	}
	a.text("gen_ai.conversation.id", string(conversation))
	a.text("rye.thread_id", string(r.ThreadID))
	a.text("rye.parent_thread_id", string(r.ParentID))
	a.text("rye.status", string(r.Status))
	a.number("rye.turns", int64(r.Cost.Turns))
	a.fraction("rye.spend_usd", r.Cost.Spend.Dollars())
	if b.said != nil {
		b.said.ofThread(a, r.Outcome)
	}
}

// status is that of the whole: a thread that was cancelled or has handed over has not
// failed.
func (b *builder) status(a *attributes) *Status {
	r := b.Record
	if r.Status != thread.Error {
		return nil
	}
	status := &Status{Code: statusError}
	code := "_OTHER"
	if r.Outcome != nil && r.Outcome.Error != nil {
		code = r.Outcome.Error.Code
		if b.said != nil {
			status.Message = bounded(r.Outcome.Error.Message)
		}
	}
	a.text("error.type", code)
	return status
}

// span is one thing that the thread did.
func (b *builder) span(s timeline.Span, length int64) Span {
	end := length
	if s.EndMS != nil {
		end = *s.EndMS
	}
	end = max(end, s.StartMS)
	one := Span{
		TraceID: b.trace, SpanID: eventSpan(b.Place, b.Record.ThreadID, s.Kind, s.Seq), ParentSpanID: b.self, Kind: kindInternal,
		Start: b.at(s.StartMS), End: b.at(end), Name: strings.TrimSpace("rye." + string(s.Kind) + " " + nameOf(s)),
	}
	var a attributes
	failure := "_OTHER"
	switch {
	case s.Kind == timeline.Model:
		one.Kind = kindClient
		_, model := split(s.Name)
		one.Name = strings.TrimSpace("chat " + model)
		a.chat(s)
		if s.Error != "" && s.Detail != "" {
			failure = s.Detail // the category
		}
	case isCall(s):
		one.Name = strings.TrimSpace("execute_tool " + s.Name)
		a.text("gen_ai.operation.name", "execute_tool")
		a.text("gen_ai.tool.name", s.Name)
		a.text("gen_ai.tool.type", "function")
		a.text("gen_ai.tool.call.id", s.CallID)
		if isItem(s.Detail) {
			a.text("rye.item", s.Detail)
		}
	}
	a.number("rye.turn", int64(s.Turn))
	a.fraction("rye.spend_usd", s.Spend.Dollars())
	a.text("rye.child_thread_id", string(s.Child))
	a.number("rye.merged_count", int64(s.Count))
	if b.said != nil {
		b.said.ofSpan(&a, s)
	}
	one.Status = b.failed(&a, s, failure)
	one.Attributes = a
	return one
}

// isItem reports whether a text can be the id of an item or the name of an operation: what
// else a model has put in its place is among what it said.
func isItem(text string) bool {
	return len(text) <= 128 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789_-./@") == ""
}

// isCall reports whether a span is a call of a tool; one that only waits for threads is
// too.
func isCall(s timeline.Span) bool {
	return s.Kind == timeline.Tool || s.Kind == timeline.Wait && s.CallID != "" && s.Child == ""
}

// failed says that a call has. Its message can have words of files and models.
func (b *builder) failed(a *attributes, s timeline.Span, failure string) *Status {
	if s.Error == "" {
		return nil
	}
	a.text("error.type", failure)
	status := &Status{Code: statusError}
	if b.said != nil {
		status.Message = s.Error
	}
	return status
}

// nameOf is what the name of a span says beside its kind; codes and names of ours.
func nameOf(s timeline.Span) string {
	switch s.Kind {
	case timeline.Start, timeline.Hook, timeline.Question, timeline.Backoff, timeline.Wait:
		return s.Name
	default:
		return ""
	}
}

func (b *builder) at(ms int64) nanos {
	return nanosOf(b.began.Add(time.Duration(ms) * time.Millisecond))
}

// chat are the attributes of a call of a model.
func (a *attributes) chat(s timeline.Span) {
	a.text("gen_ai.operation.name", "chat")
	a.model(s.Name)
	if s.Tokens != nil {
		a.usage(*s.Tokens)
		if s.Detail != "" {
			a.texts("gen_ai.response.finish_reasons", s.Detail)
		}
	}
	a.number("rye.attempt", int64(s.Attempt))
	a.number("rye.request_bytes", s.Bytes)
	if s.FirstMS != nil {
		a.number("rye.first_piece_ms", *s.FirstMS)
	}
}

// model are the attributes of a model that is written "provider/model".
func (a *attributes) model(name string) {
	provider, model := split(name)
	a.text("gen_ai.provider.name", provider)
	a.text("gen_ai.request.model", model)
}

func split(name string) (provider, model string) {
	provider, model, ok := strings.Cut(name, "/")
	if !ok {
		return "", name
	}
	return provider, model
}

// usage are tokens as the conventions count them: what a cache had is input too.
func (a *attributes) usage(t timeline.Tokens) {
	a.number("gen_ai.usage.input_tokens", thread.Sum(t.Input, t.CacheRead, t.CacheWrite))
	a.number("gen_ai.usage.output_tokens", t.Output)
	a.number("gen_ai.usage.cache_read.input_tokens", t.CacheRead)
	a.number("gen_ai.usage.cache_creation.input_tokens", t.CacheWrite)
}
