//go:build !linux

package pgtest

const memory = ""

func roomInMemory() bool { return false }
