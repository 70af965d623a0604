package place

import "io/fs"

// OwnerOf is not known on Windows.
func OwnerOf(fs.FileInfo) (int, bool) { return 0, false }

// folderIdentity is not known on Windows.
func folderIdentity(string) string { return "" }
