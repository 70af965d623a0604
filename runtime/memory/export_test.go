package memory

// Fenced is fenced, for tests.
var Fenced = fenced

// SaidSpace is saidSpace, for tests.
const SaidSpace = saidSpace
