package folder

import "path/filepath"

// stagingName is the folder below the one of all threads in which threads that come from
// elsewhere are put together. No thread is found there.
const stagingName = ".import"

// Staging is where threads that come from elsewhere are put together.
func (h Home) Staging() Home { return Home{Dir: filepath.Join(h.Dir, stagingName), Seal: h.Seal} }
