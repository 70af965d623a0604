package process

// lockHolders finds nobody on macOS, which does not tell.
func lockHolders(string) []int { return nil }
