package hook

import (
	"slices"
	"strings"
)

// eventData names the data of each event. "event", which all have, is left out.
var eventData = map[Event]string{
	EventResolveExtends:      "directive has_extends category inputs model",
	EventBuildSystemPrompt:   threadData,
	EventThreadStarted:       threadData,
	EventThreadContinued:     threadData + " previous_thread_id previous_summary_id",
	EventAfterStep:           runningData,
	EventError:               runningData + " error classification",
	EventLimit:               runningData + " limit_code current_value current_max",
	EventBeforeHandoff:       runningData + " tokens_used",
	EventContextLimitReached: runningData + " usage_ratio tokens_used tokens_limit",
	EventDirectiveReturn:     runningData + " outputs",
	EventAfterComplete:       runningData + " status",
}

// threadData are what a thread knows of itself before its first turn.
const threadData = "directive directive_text directive_body project_path inputs capabilities_summary model parent_thread_id depth limits " +
	"spend_limit max_turns"

// runningData are what every event after the start tells of the thread.
const runningData = "thread_id directive directive_text project_path inputs model limits cost"

// Data names the data of a known event, beside "event".
func (e Event) Data() []string { return strings.Fields(eventData[e]) }

// Data names the data that the events the hook hears have between them, sorted.
func (h *Hook) Data() []string {
	var names []string
	for _, e := range Events() {
		if h.hears(e) {
			names = append(names, e.Data()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
