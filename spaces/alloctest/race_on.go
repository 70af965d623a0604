//go:build race

package alloctest

// raceDetector says that its own allocations are counted with those of the program.
const raceDetector = true
