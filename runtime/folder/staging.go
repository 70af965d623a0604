package folder

import "path/filepath"

// stagingName is the folder below the one of all threads in which threads that come from
// elsewhere are put together. No thread is found there.
const stagingName = ".import"

// tracesName is the folder in which it is noted whose traces are due. No thread is found
// there.
const tracesName = ".traces"

// snapshotsName is the folder of the items that threads work by. No thread is found there.
const snapshotsName = ".snapshots"

// Snapshots is the folder of the items that threads work by.
func (h Home) Snapshots() string { return filepath.Join(h.Dir, snapshotsName) }

// Traces is the folder in which it is noted whose traces are due.
func (h Home) Traces() string { return filepath.Join(h.Dir, tracesName) }

// copiesName is the folder in which it is noted what of the threads' files is a copy of what
// a server has. No thread is found there.
const copiesName = ".copies"

// Copies is the folder in which it is noted what is a copy of what a server has.
func (h Home) Copies() string { return filepath.Join(h.Dir, copiesName) }

// mirrorName is the folder in which it is noted whose copies on the mirror are due. No
// thread is found there.
const mirrorName = ".mirror"

// Mirror is the folder in which it is noted whose copies on the mirror are due.
func (h Home) Mirror() string { return filepath.Join(h.Dir, mirrorName) }

// isReserved reports whether a folder below the one of all threads is for something else.
func isReserved(name string) bool {
	switch name {
	case stagingName, tracesName, copiesName, mirrorName, snapshotsName:
		return true
	}
	return false
}

// Staging is where threads that come from elsewhere are put together.
func (h Home) Staging() Home { return Home{Dir: filepath.Join(h.Dir, stagingName), Seal: h.Seal} }
