// Package gitrepo runs git where nothing of the repository's configuration runs.
//
// A repository can be a stranger's, and git runs what a repository's configuration
// says: hooks, monitors, filters, converters, pagers, helpers. So git is not shown
// that configuration. It is given a git folder of our own ([Repository.Shadow]), in
// which the configuration is ours, and the refs, objects and index of the repository
// are links to those of the repository. Configuration that is not there cannot run.
package gitrepo
