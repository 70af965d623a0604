package recording

// A recording has bounds. A transcript of a day's work is some megabytes.
const (
	maxArchive  = 256 << 20 // bytes of the file
	maxContent  = 256 << 20 // bytes of all members together
	maxMember   = 128 << 20 // bytes of one
	maxManifest = 8 << 20
	maxMembers  = 20_000
	maxName     = 200
	maxThreads  = 1000
)
