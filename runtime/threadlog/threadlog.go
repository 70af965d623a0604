//go:build linux || darwin

// Package threadlog keeps the log of a thread's process within bounds.
//
// The log is the standard output and error of the process: the spawner opened
// the file for appending, and what lands in it without asking, such as the
// stack of a panic, must not be lost. So the log is not copied or cut. When it
// has grown too long the file gets another name, thread.log.1, and the two
// descriptors are exchanged for a new file in one step each. A writer in the
// middle of a write completes it in the old file; a process that inherited the
// old file writes to that until it is replaced in turn.
package threadlog

import (
	"errors"
	"io"
	"os"
	"sync"
)

// maxBytes is the length at which a log is put aside: with the one before it,
// a thread's log takes twice as much, and what its last line exceeds it by.
const maxBytes = 4 << 20

// fileMode: logs are for their owner alone.
const fileMode = 0o600

// Log writes to the standard error of this process and bounds the file behind
// it. It may be used by several goroutines.
type Log struct {
	path string
	most int64

	mu sync.Mutex
}

// Wrap returns a writer to stderr that bounds the file at path, when that is
// what the standard error of this process goes to; any other stderr is returned
// as it is.
func Wrap(stderr io.Writer, path string) io.Writer { return wrap(stderr, path, maxBytes) }

func wrap(stderr io.Writer, path string, most int64) io.Writer {
	if f, ok := stderr.(*os.File); !ok || f != os.Stderr || !isAt(f, path) {
		return stderr
	}
	return &Log{path: path, most: most}
}

// isAt reports whether f is the file at path.
func isAt(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && opened.Mode().IsRegular() && os.SameFile(opened, named)
}

// Write appends p, with one write(2), to the log or to a new one when it would
// grow too long. A log that cannot be put aside is written on: words that are
// too many are better than none.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if info, err := os.Stderr.Stat(); err == nil && info.Size() > 0 && info.Size()+int64(len(p)) > l.most {
		_ = l.rotate()
	}
	return os.Stderr.Write(p)
}

// rotate puts the log aside. A crash between its steps leaves the log under one
// of its two names. A log that somebody else has moved or replaced is not
// touched.
func (l *Log) rotate() error {
	if !isAt(os.Stderr, l.path) {
		return errors.New("the log is not at its place")
	}
	fresh := l.path + ".new"
	next, err := os.OpenFile(fresh, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	defer func() { _ = next.Close() }() // the descriptors are copies
	withStdout := sameFile(os.Stdout, os.Stderr)
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	if err := os.Rename(fresh, l.path); err != nil {
		return err
	}
	if err := replace(os.Stderr, next); err != nil {
		return err
	}
	if withStdout {
		return replace(os.Stdout, next)
	}
	return nil
}

func sameFile(a, b *os.File) bool {
	infoA, errA := a.Stat()
	infoB, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
