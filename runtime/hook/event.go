package hook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/expr"
	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// Event is something in the life of a thread that hooks hear.
type Event string

// The events, in the order a thread comes to them.
const (
	EventResolveExtends      Event = "resolve_extends"
	EventBuildSystemPrompt   Event = "build_system_prompt"
	EventThreadStarted       Event = "thread_started"
	EventThreadContinued     Event = "thread_continued"
	EventAfterStep           Event = "after_step"
	EventError               Event = "error"
	EventLimit               Event = "limit"
	EventBeforeHandoff       Event = "before_handoff"
	EventContextLimitReached Event = "context_limit_reached"
	EventDirectiveReturn     Event = "directive_return"
	EventAfterComplete       Event = "after_complete"
)

// Kind says what becomes of the hooks of an event.
type Kind int

// The kinds of events.
const (
	KindExtends Kind = iota // the first one names a directive
	KindContext             // all give text
	KindControl             // the first one decides
	KindNotify              // all run
)

// eventRules is what holds for an event.
type eventRules struct {
	event    Event
	kind     Kind
	verdicts []Verdict // that a hook may give; of KindControl only
}

var events = []eventRules{
	{EventResolveExtends, KindExtends, nil},
	{EventBuildSystemPrompt, KindContext, nil},
	{EventThreadStarted, KindContext, nil},
	{EventThreadContinued, KindContext, nil},
	{EventAfterStep, KindControl, []Verdict{Fail, Abort, Continue, Escalate}},
	{EventError, KindControl, []Verdict{Retry, Fail, Abort, Continue, Escalate}},
	{EventLimit, KindControl, []Verdict{Fail, Abort, Continue, Escalate}},
	{EventBeforeHandoff, KindControl, []Verdict{Abort, Continue}},
	{EventContextLimitReached, KindControl, []Verdict{Retry, Fail, Abort, Continue, Escalate}},
	{EventDirectiveReturn, KindNotify, nil},
	{EventAfterComplete, KindNotify, nil},
}

// Events lists the events in the order a thread comes to them.
func Events() []Event {
	all := make([]Event, len(events))
	for i, e := range events {
		all[i] = e.event
	}
	return all
}

// Kind is the kind of a known event.
func (e Event) Kind() Kind { return e.rules().kind }

// rules are what holds for an event. That of no or an unknown event is a notify
// event in which nothing can be decided.
func (e Event) rules() eventRules {
	i := slices.IndexFunc(events, func(r eventRules) bool { return r.event == e })
	if i < 0 {
		return eventRules{event: e, kind: KindNotify}
	}
	return events[i]
}

// contextEvents are those of KindContext.
func contextEvents() []Event {
	return slices.DeleteFunc(Events(), func(e Event) bool { return e.Kind() != KindContext })
}

// ParseEvent reads the name of an event.
func ParseEvent(name string) (Event, error) {
	known := make([]string, len(events))
	for i, e := range events {
		if string(e.event) == name {
			return e.event, nil
		}
		known[i] = string(e.event)
	}
	if near := item.Nearest(name, known); near != "" {
		return "", fmt.Errorf("event %q is unknown; did you mean %q?", item.Shown(name), near)
	}
	return "", fmt.Errorf("event %q is unknown; there are %s", item.Shown(name), strings.Join(known, ", "))
}

// Verdict is what a hook decides at a control event.
type Verdict string

// The verdicts. A handoff is called off with Abort.
const (
	Retry    Verdict = "retry"    // do again what failed
	Fail     Verdict = "fail"     // end the thread as failed
	Abort    Verdict = "abort"    // end the thread as cancelled
	Continue Verdict = "continue" // do what would be done without hooks; at a limit, have a last turn
	Escalate Verdict = "escalate" // ask the person
)

// Decision is what the hooks of a control event decided; the zero value is none.
type Decision struct {
	Verdict Verdict
	Params  map[string]any // what else the action said, such as error, as [expr.Plain] makes it
	// Delay is how many seconds to wait before a retry; nil when the hook does not say.
	Delay  *float64
	HookID string
}

// Given reports whether there is a decision.
func (d Decision) Given() bool { return d.Verdict != "" }

// decide reads a decision from the params of the control action.
func decide(event Event, params map[string]any) (Decision, error) {
	verdict, err := verdictOf(event, params)
	if err != nil {
		return Decision{}, err
	}
	plain, err := expr.Plain(params)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Verdict: verdict}
	if d.Delay, err = delayOf(params); err != nil {
		return Decision{}, err
	}
	d.Params, _ = plain.(map[string]any) // of a map it makes a map
	delete(d.Params, verdictParam)
	return d, nil
}

// Params of the control action.
const (
	verdictParam = "action"
	delayParam   = "delay_seconds"
)

// delayOf reads a delay, which may be written as text: that of an element, or of a template
// among others. One whose template gave nothing is none.
func delayOf(params map[string]any) (*float64, error) {
	given, err := expr.Plain(params[delayParam])
	if err != nil {
		return nil, err
	}
	text := item.Text(given)
	if given == nil || text == "" {
		return nil, nil
	}
	number, err := item.ParseValue(item.TypeNumber, text)
	seconds, ok := number.(float64)
	if err != nil || !ok || seconds < 0 {
		return nil, fmt.Errorf("%s is %q; want a number of seconds", delayParam, item.Shown(text))
	}
	return &seconds, nil
}

func verdictOf(event Event, params map[string]any) (Verdict, error) {
	allowed := event.rules().verdicts
	if len(allowed) == 0 {
		return "", fmt.Errorf("at the event %s nothing can be decided", event)
	}
	name, ok := params[verdictParam].(string)
	if !ok {
		return "", fmt.Errorf("%s needs the param %s: %s", ControlID, verdictParam, oneOf(allowed))
	}
	if !slices.Contains(allowed, Verdict(name)) {
		return "", fmt.Errorf("a hook of %s cannot decide %q; it can %s", event, name, oneOf(allowed))
	}
	return Verdict(name), nil
}

func oneOf[T ~string](words []T) string {
	names := make([]string, len(words))
	for i, v := range words {
		names[i] = string(v)
	}
	return strings.Join(names, ", ")
}
