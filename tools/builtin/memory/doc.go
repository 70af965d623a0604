// Package memory are the tools rye/memory/…: what threads and people note for later
// threads, and what comes back of it. [Memory] keeps, signs and finds; the words
// that both sides need stand here.
//
// While memory is off each tool does nothing and says so; nothing is opened then.
package memory
