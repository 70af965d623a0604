// Package telemetry sends what threads did as spans to where the user wants them, by
// OTLP/HTTP in JSON or Protocol Buffers. It is off unless the user's environment names an endpoint in
// OpenTelemetry's own variables.
//
// Spans are derived from the row and the transcript of a thread when it has ended. Their
// ids follow from the thread's, so that the processes of a tree tell each other nothing,
// and what is sent again after a crash is the same. No thread waits for it: before the
// change that ends a thread, that it is due is noted in a file (see [NotesIn]), and a process
// that belongs to nobody sends what is due (see [Sender]).
package telemetry
