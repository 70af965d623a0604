package sharedfile

import (
	"encoding/binary"
	"os"
)

// commitCounter counts the commits to a database, so that a reader learns for one
// small read that there was none since it looked last. SQLite tells too (PRAGMA
// data_version), for ten times as much.
//
// The writer who has the turn raises the number of those begun before its
// commit, and the number of those done when the commit is visible. While the two
// differ a commit may be visible or not, and SQLite must be asked. They differ
// until the next commit when the writer dies in between, or cannot tell whether
// its commit is kept.
//
// The numbers are in the files of the queue's locks, which may be closed at any
// time: closing a file of SQLite's would free the locks it has there. Only the
// one that says done is watched, so that a commit is reported once.
type commitCounter struct{ begun, done *os.File }

// numberAt is where a number stands: behind the byte that is locked, which
// nobody else can read on Windows.
const numberAt = 8

// begin is called before a commit, with the turn in hand. A number that cannot
// be written leaves the commit to those who ask SQLite.
func (c commitCounter) begin() (number uint64) {
	begun, _ := readNumber(c.begun)
	done, _ := readNumber(c.done)
	number = max(begun, done) + 1
	writeNumber(c.begun, number)
	return number
}

// end is called when the commit is visible, with what begin returned. It wakes
// who watches the file.
func (c commitCounter) end(number uint64) { writeNumber(c.done, number) }

// quiet returns the number of commits when none is on its way; ok is false when
// there is one, and when the numbers cannot be read or nobody has counted yet.
func (c commitCounter) quiet() (number uint64, ok bool) {
	begun, ok := readNumber(c.begun)
	if !ok {
		return 0, false
	}
	done, ok := readNumber(c.done)
	return done, ok && begun == done
}

// still reports whether nothing was begun since quiet returned number.
func (c commitCounter) still(number uint64) bool {
	begun, ok := readNumber(c.begun)
	return ok && begun == number
}

// inPlace reports whether writers who come now count here. When somebody removes a
// file under their feet, those who have it open and those who come are strangers to
// each other.
func (c commitCounter) inPlace() bool {
	for _, f := range []*os.File{c.begun, c.done} {
		if info, err := f.Stat(); err != nil || !sameFile(f.Name(), info) {
			return false
		}
	}
	return true
}

func readNumber(f *os.File) (number uint64, ok bool) {
	var b [8]byte
	if _, err := f.ReadAt(b[:], numberAt); err != nil {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

func writeNumber(f *os.File, number uint64) {
	_, _ = f.WriteAt(binary.LittleEndian.AppendUint64(nil, number), numberAt)
}
