package sqlite

// mayWrite returns why this process may not read and write a file that exists;
// here SQLite's own error has to do.
func mayWrite(string) error { return nil }

// syncDir has nothing to do: NTFS keeps a log of names.
func syncDir(string) error { return nil }
