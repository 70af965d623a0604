// Package mirror keeps a copy of each thread on a LangGraph server: the thread there has
// an id that follows from the place of the project and the thread's own, what the row says
// as metadata, and what was said as messages of its state.
//
// It is a copy and nothing else: nothing here is decided by what the server says, and no
// thread waits for it. With a change it is noted that the thread is due ([Outbox]), and a
// process that belongs to nobody, or a worker, sends what is due, see [Sender]: the thread as
// it is then, so that of many changes the last counts. What is sent again after a crash
// changes nothing.
package mirror
