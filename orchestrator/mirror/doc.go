// Package mirror keeps a copy of each thread on a LangGraph server: the thread there has
// an id that follows from the place of the project and the thread's own, what the row says
// as metadata, and what was said as messages of its state.
//
// It is a copy and nothing else: nothing here is decided by what the server says, and no
// thread waits for it. A change notes that the thread is due ([Outbox]). A process that
// belongs to nobody, or a worker, sends each thread that is due, see [Sender], as it is
// then: of many changes the last counts. Sending it again after a crash changes nothing.
package mirror
