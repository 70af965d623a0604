// Package memory are the tools rye/memory/…: what threads and people note for later
// threads, and what comes back of it. What is kept, signed and found is behind
// [Memory]; the words that both sides need stand here.
//
// While memory is off each tool does nothing and says so; nothing is opened then.
package memory
