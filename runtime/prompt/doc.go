// Package prompt puts together what a model is told: the first message of a
// thread, the reminders when it forgets to act, and an estimate of how much of
// the context window a conversation takes. All functions are pure.
package prompt
