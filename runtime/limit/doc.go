// Package limit holds the rules about a thread's limits and money: how layers
// of limits become one set, what stops a thread before its next turn, and how
// long an answer may be so that no call can cost more than is left. All
// functions are pure.
package limit
