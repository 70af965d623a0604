// Package protect decides which files tools may read and write. Some files make
// other programs run commands (of git, of editors, of agents), some say what
// threads may do and cost, some hold keys, and some are the runtime's own record:
// a thread that could change them would have rights that nobody gave it.
//
// There is one decision, of two parts that both count. [ByName] judges a path by
// its names, at any depth and as the most forgiving file system would read them.
// [Marks] know the protected files of one project and of the user space by what
// they are, so that a link, a mount or another spelling does not lead to them.
package protect
