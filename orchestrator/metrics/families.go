package metrics

import "bytes"

// Units: sums in these are whole numbers.
const (
	millis = 1000 // milliseconds in a second
	micros = 1e6  // micro-dollars in a dollar
)

var (
	// requestBounds are those that OpenTelemetry's conventions for generative AI give
	// gen_ai.client.operation.duration, in milliseconds.
	requestBounds = []int64{10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240, 20480, 40960, 81920}
	// longBounds are for what can take hours, in milliseconds.
	longBounds = []int64{100, 500, 1_000, 5_000, 15_000, 60_000, 300_000, 900_000, 3_600_000, 14_400_000}
)

// families are all that is told.
type families struct {
	all []*family // in the order in which they are told

	build, processStart, up *family

	threads, kept, queue, queueOldest, questions, questionOldest *family

	started, ended, errors *family
	queueTime, duration    *family
	turns, tokens, spend   *family

	modelTime, firstPiece, modelErrors, backoff *family
	toolCalls, toolTime, questionTime           *family
	unread, skipped                             *family
}

func newFamilies() *families {
	f := &families{}
	f.ofServer()
	f.ofMoment()
	f.ofThreads()
	f.ofCosts()
	f.ofTranscripts()
	return f
}

func (f *families) gauge(per float64, name, help string, labels ...string) *family {
	return f.add(&family{name: name, help: help, kind: gauge, labels: labels, per: per})
}

func (f *families) counter(per float64, name, help string, labels ...string) *family {
	return f.add(&family{name: name, help: help, kind: counter, labels: labels, per: per})
}

func (f *families) histogram(bounds []int64, name, help string, labels ...string) *family {
	return f.add(&family{name: name, help: help, kind: histogram, labels: labels, per: millis, bounds: bounds})
}

func (f *families) add(one *family) *family {
	f.all = append(f.all, one)
	return one
}

func (f *families) ofServer() {
	f.build = f.gauge(1, "rye_build_info", "Version of the server; the value is 1.", "version")
	f.processStart = f.gauge(millis, "process_start_time_seconds", "When the server was started, in seconds since 1970; all counters began at 0 then.")
	f.up = f.gauge(1, "rye_project_up", "Whether the threads of the project could be looked at for this scrape.", "project")
}

func (f *families) ofMoment() {
	f.threads = f.gauge(1, "rye_threads", "Threads that have not ended; queued ones wait for a slot, waiting ones for other threads.", "project", "state")
	f.kept = f.gauge(1, "rye_threads_kept", "Threads of which there is a row, those that have ended too.", "project")
	f.queue = f.gauge(1, "rye_queue_length", "Threads that are queued for a slot.", "project")
	f.queueOldest = f.gauge(millis, "rye_queue_oldest_seconds", "How long the first thread of the queue has been queued; 0 without one.", "project")
	f.questions = f.gauge(1, "rye_questions_open", "Questions that threads wait for an answer to, by kind.", "project", "kind")
	f.questionOldest = f.gauge(millis, "rye_question_oldest_seconds", "How long the oldest open question has been open; 0 without one.", "project")
}

func (f *families) ofThreads() {
	f.started = f.counter(1, "rye_threads_started_total", "Threads that were registered.", "project", "kind", "directive")
	f.ended = f.counter(1, "rye_threads_ended_total", "Threads that have ended, by the state they ended in; deleted: before a scrape has seen that.", "project", "kind", "directive", "state")
	f.errors = f.counter(1, "rye_thread_errors_total", "Threads that have ended with an error, by its code.", "project", "code")
	f.queueTime = f.histogram(longBounds, "rye_queue_seconds", "How long threads were queued before they had a slot.", "project")
	f.duration = f.histogram(longBounds, "rye_thread_seconds", "How long threads took from their registration to their end.", "project", "state")
}

func (f *families) ofCosts() {
	f.turns = f.counter(1, "rye_turns_total", "Turns, each with a call of a model that was answered.", "project", "directive")
	f.tokens = f.counter(1, "rye_tokens_total", "Tokens by kind; input is what no cache had.", "project", "model", "kind")
	f.spend = f.counter(micros, "rye_spend_dollars_total", "What the threads have spent, in US dollars.", "project", "directive", "model")
}

// ofTranscripts are counted when a thread has ended.
func (f *families) ofTranscripts() {
	f.modelTime = f.histogram(requestBounds, "rye_model_request_seconds", "How long calls of models took that were answered; counted when their thread has ended.", "project", "model")
	f.firstPiece = f.histogram(requestBounds, "rye_model_first_piece_seconds", "How long it took until the first piece of an answer.", "project", "model")
	f.modelErrors = f.counter(1, "rye_model_errors_total", "Calls of models that have failed, by class.", "project", "model", "class")
	f.backoff = f.counter(millis, "rye_backoff_seconds_total", "How long threads waited before they repeated a call that had failed.", "project")
	f.toolCalls = f.counter(1, "rye_tool_calls_total", "Calls of tools.", "project", "tool", "outcome")
	f.toolTime = f.histogram(longBounds, "rye_tool_seconds", "How long calls of tools took.", "project")
	f.questionTime = f.histogram(longBounds, "rye_question_seconds", "How long threads waited for an answer to a question.", "project")
	f.unread = f.gauge(1, "rye_transcripts_unread", "Threads that have ended and of which the next scrapes read what they did.", "project")
	f.skipped = f.counter(1, "rye_transcripts_skipped_total", "Threads of which it is not read what they did: too many at once, too long, or not readable.", "project")
}

func (f *families) write(out *bytes.Buffer) {
	for _, one := range f.all {
		one.write(out)
	}
}
