// Package workspace gives threads working trees of their own: each begins with the
// project's files as they are, uncommitted ones included, and what a thread changes
// there comes into the project when somebody applies it.
//
// A workspace is a folder of the user space, .ai/workspaces/PLACE/NAME:
//
//	workspace.json   what it is and what its changes are counted from, sealed; written
//	                 last, so that without it there is no workspace
//	tree/            the files
//	git/             the git folder of the tree: history, index and objects of its own
//	lent/            links to the objects of the project's repository
//	index            of the tree, ours: which files were there at the beginning
//	users/           a lock for each process that works in the tree
//	ignored/         files that git ignores, while the tree is made again
//
// The project's repository is read and never written. Files are taken byte by byte,
// without the conversions that a repository's attributes ask for, so a workspace has
// what lies in the project, and applying compares what lies there. Every command of
// git runs in a git folder that was made for it ([gitrepo]): nothing that a
// repository, or a thread in its workspace, configures is run.
//
// Changes are applied all or none: what is to be written is decided in memory, put
// down in a journal, written beside the files that it replaces, and moved into place.
// The next process after a crash goes on from the journal, or takes back what was done
// where somebody has changed a file since.
package workspace
