package memory

// Fenced is fenced, for tests.
var Fenced = fenced
