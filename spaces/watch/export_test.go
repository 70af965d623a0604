package watch

// Watched is how many folders are watched.
func (w *Watch) Watched() int { return len(w.files.WatchList()) }

// MaxFolders is the bound of it.
const MaxFolders = maxFolders

// Tell is what a watch does when something may have changed.
func (s *Shared) Tell() { s.tell() }
