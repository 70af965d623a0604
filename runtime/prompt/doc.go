// Package prompt puts together what a model is told: a directive with what it
// extends ([Composer]), the first message of a thread ([Build]) or of a caller's
// own model ([Inline]), and the reminders when it forgets to act. Composing
// reads items; all other functions are pure.
package prompt
