// Package prompt puts together what a model is told: the first message of a
// thread, and the reminders when it forgets to act. All functions are pure.
package prompt
