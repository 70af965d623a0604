package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/confine"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// stateFolder looks whether the threads' folder can be written, and by nobody
// else, and names those that are not the user's.
func (d *doctor) stateFolder(context.Context) []finding {
	state, err := d.state()
	if err != nil {
		return d.unreadable(err)
	}
	user, err := userSpace(d.sys)
	if err != nil {
		return d.unreadable(err)
	}
	if state.NoPlace {
		refused := &place.NoPlaceError{Strangers: state.Strangers}
		return []finding{failf(refused.Try(), "%v", refused)}
	}
	var found []finding
	for _, s := range state.Strangers {
		found = append(found, warnf(adoptWith(state, s), "%s", s))
	}
	if err := keepsState(user, state); err != nil {
		return append(found, failf(err.Try(), "%v", err))
	}
	if state.Dir != "" {
		found = append(found, d.folder(state.Dir)...)
	}
	return found
}

// keepsState tells whether the user space can keep the key of a state that is still to
// be made.
func keepsState(user string, state place.State) *place.NoUserSpaceError {
	if state.Seal != nil {
		return nil
	}
	above := sign.StateFolder(user)
	for _, err := os.Stat(above); err != nil && filepath.Dir(above) != above; _, err = os.Stat(above) {
		above = filepath.Dir(above)
	}
	if err := unix.Access(above, unix.W_OK|unix.X_OK); err != nil {
		return &place.NoUserSpaceError{User: user, Err: fmt.Errorf("%s: %w", above, err)}
	}
	return nil
}

// adoptWith is what a person can do about a stranger's state.
func adoptWith(own place.State, s place.Stranger) string {
	switch {
	case s.Away:
		return "put a folder of your own in its place, or leave it: your threads are kept beside it"
	case s.Unsigned():
		return "leave it: what no key has signed cannot be adopted; the rye-mcp that left it shows it"
	case own.Seal != nil:
		return fmt.Sprintf("leave it; or, if they are your own, move %q away, then rye-mcp trust --adopt-state", own.Dir)
	}
	return "rye-mcp trust --adopt-state, if they are your own"
}

// unreadable says what keeps the state from being looked at.
func (d *doctor) unreadable(err error) []finding {
	dir := filepath.Join(d.project, ".ai", "state", "threads")
	if _, missing := os.Lstat(dir); missing != nil {
		return []finding{failf("make the folders above it readable", "%v", err)}
	}
	return append(d.folder(dir), failf("", "%v", err))[:1]
}

// state finds out where the threads of the project are.
func (d *doctor) state() (place.State, error) {
	user, err := userSpace(d.sys)
	if err != nil {
		return place.State{}, err
	}
	return newFinder(d.sys, user).Find(d.project)
}

func (d *doctor) folder(dir string) []finding {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return []finding{d.canBeMade(dir)}
	case err != nil:
		return []finding{failf("make the folders above it readable", "%v", err)}
	case info.Mode()&fs.ModeSymlink != 0:
		return []finding{failf("move the folder it leads to in its place", "%s is a symbolic link; it must be a folder of its own", dir)}
	case !info.IsDir():
		return []finding{failf("move it away", "%s is not a folder", dir)}
	}
	var found []finding
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		found = append(found, warnf(fmt.Sprintf("chown -R %d %q", os.Geteuid(), dir), "%s belongs to user %d, you are %d", dir, stat.Uid, os.Geteuid()))
	}
	if err := unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		found = append(found, failf(fmt.Sprintf("chmod -R u+rwX %q", dir), "%s cannot be read and written: %v", dir, err))
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		found = append(found, warnf(fmt.Sprintf("chmod 700 %q", dir), "others can look into %s (mode %04o)", dir, mode))
	}
	if len(found) == 0 {
		return []finding{okf("%s", dir)}
	}
	return found
}

// canBeMade looks at the innermost folder that exists on the way to dir.
func (d *doctor) canBeMade(dir string) finding {
	above := dir
	for above != d.project {
		above = filepath.Dir(above)
		if info, err := os.Stat(above); err == nil && !info.IsDir() {
			return failf("move it away", "%s is not a folder", above)
		} else if err == nil {
			break
		}
	}
	if err := unix.Access(above, unix.W_OK|unix.X_OK); err != nil {
		return failf(fmt.Sprintf("chmod u+wx %q", above), "%s cannot be written, so no thread can start: %v", above, err)
	}
	return okf("there is none yet; the first thread makes it")
}

// data looks at the database, and at the threads when that can be used.
func (d *doctor) data(ctx context.Context) []finding {
	if d.keptElsewhere(ctx) {
		return nil // the check of the thread store tells
	}
	state, err := d.state()
	if err != nil || state.Seal == nil && !state.Former {
		return []finding{okf("there is none yet")} // the check of the folder tells why
	}
	if state.Former {
		return []finding{warnf("rye-mcp threads list: it takes them over", "the threads were left by an earlier rye-mcp")}
	}
	dir := state.Dir
	found := d.database(ctx, state)
	if !slices.ContainsFunc(found, func(f finding) bool { return f.Level == levelFail }) {
		found = append(found, d.held(ctx, state)...)
		found = append(found, d.threads(ctx)...)
	}
	return append(found, keptAside(dir, "look into it with sqlite3, or rm %q")...)
}

// largeDatabases is the size in MiB above which registry and ledger are read whole only
// for who asks for all: that takes a second for some hundred MiB.
const largeDatabases = 4

// database opens registry and ledger as they are and reads all of them, unless they
// are large.
func (d *doctor) database(ctx context.Context, state place.State) []finding {
	var lost bool
	kept, err := sqlite.FootprintOf(state.Dir)
	size := float64(kept.Bytes) / (1 << 20)
	whole := d.all || size <= largeDatabases
	if err == nil {
		lost, err = d.readDatabase(ctx, state, whole)
	}
	var corrupt *store.CorruptError
	switch {
	case errors.As(err, &corrupt):
		return []finding{failf("rye-mcp threads list: it keeps the file and rebuilds what the thread folders tell", "%v", corrupt)}
	case errors.Is(err, store.ErrTooNew):
		return []finding{failf("install the newer rye-mcp", "%v", err)}
	case err != nil:
		return []finding{failf("", "%v", err)}
	case lost:
		return []finding{warnf("rye-mcp threads list: it rebuilds them from the thread folders", "rows of threads are missing")}
	case !whole:
		return []finding{okf("registry and ledger can be read; of %.0f MiB not everything was, which rye-mcp doctor --all does", size)}
	}
	return []finding{okf("registry and ledger are sound")}
}

// readDatabase opens registry and ledger, and reports whether rows are missing.
func (d *doctor) readDatabase(ctx context.Context, state place.State, whole bool) (lost bool, err error) {
	st, err := openAsItIs(ctx, d.here(), state)
	if err != nil {
		return false, err
	}
	lost, err = st.Lost(ctx)
	if whole {
		err = errors.Join(err, st.Check(ctx))
	}
	return lost, errors.Join(err, st.Close())
}

// here is where process numbers mean what they mean to this process. Without the
// host's name those of other containers are told apart all the same.
func (d *doctor) here() process.Place {
	host, _ := d.sys.Hostname()
	return process.Here(host)
}

// held names the process that keeps every other from writing, and warns where locks need
// not be shared.
func (d *doctor) held(ctx context.Context, state place.State) []finding {
	st, err := openAsItIs(ctx, d.here(), state)
	if err != nil {
		return []finding{failf("", "%v", err)}
	}
	defer func() { _ = st.Close() }() // nothing was written
	found := d.shared(ctx, state.Dir, st)
	err = st.Writable(ctx)
	busy, ok := errors.AsType[*thread.BusyError](err)
	switch {
	case err == nil:
		return found
	case !ok:
		return append(found, failf("", "%v", err))
	}
	try := busy.Hint()
	if id := runBy(ctx, st, busy.Holder); id != "" {
		try = fmt.Sprintf("kill -CONT %d lets it go on; rye-mcp threads kill %s ends it", busy.Holder.PID, id)
	}
	return append(found, failf(try, "no thread can start or end: %v", busy))
}

// runBy is the thread whose process has been found out; empty when it is no thread's.
func runBy(ctx context.Context, st *sqlite.Store, p thread.Holder) (id thread.ID) {
	if !p.Near || p.PID == 0 {
		return ""
	}
	errFound := errors.New("found")
	_ = store.EachRow(ctx, st, []thread.State{thread.Created, thread.Running}, func(rec thread.Record) error {
		if rec.PID != p.PID {
			return nil
		}
		id = rec.ThreadID
		return errFound
	}) // without the registry nothing is found out
	return id
}

// keptAside names damaged databases that were moved out of the way, with what to do about each.
func keptAside(dir, try string) []finding {
	var found []finding
	for _, path := range asideIn(dir) {
		found = append(found, warnf(fmt.Sprintf(try, path), "a damaged database was kept aside: %s", path))
	}
	return few(found)
}

// asideIn are the damaged databases that were moved out of the way in a folder.
func asideIn(dir string) []string {
	paths, err := filepath.Glob(filepath.Join(globEscape(dir), "*.db.corrupt-*"))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "-wal") }) // goes with the database of that name
}

// globEscape takes the meaning from the characters of patterns.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// threads asks how the threads are.
func (d *doctor) threads(ctx context.Context) []finding {
	health, err := d.health(ctx)
	if err != nil {
		return []finding{{Check: "threads", Level: levelFail, Detail: err.Error()}}
	}
	found := []finding{okf("%d in all, %d of %s in use, %d in the queue",
		health.ThreadCount, health.Running, counted(health.MaxRunning, "slot"), health.Queued)}
	if health.Partial {
		found = append(found, okf("%s looked at, of more; rye-mcp doctor --all goes through every one",
			counted(health.Folders, "folder")))
	}
	for _, id := range health.Stuck {
		found = append(found, warnf("rye-mcp threads tail "+string(id), "thread %s lives and has recorded nothing for long", id))
	}
	if health.OrphanedFolders > 0 {
		found = append(found, warnf("rye-mcp threads reconcile", "%s without a row", counted(health.OrphanedFolders, "thread folder")))
	}
	for i := range found {
		found[i].Check = "threads"
	}
	return found
}

// health opens the project without mending its database.
func (d *doctor) health(ctx context.Context) (health.Report, error) {
	p, err := assemble(ctx, d.sys, d.project, newLog(d.sys, io.Discard), plainStore)
	if err != nil {
		return health.Report{}, err
	}
	h, err := p.control.Health.Report(ctx, health.Request{All: d.all}, nil)
	return h, errors.Join(err, p.Close())
}

// programs looks for what threads may run. Of all of them only a shell is
// needed, by the tool rye/bash.
func (d *doctor) programs(ctx context.Context) []finding {
	found := []finding{d.shell(ctx)}
	for _, name := range []string{"git", "python3", "node"} {
		if version := d.programVersion(ctx, name); version != "" {
			found = append(found, okf("%s: %s", name, version))
		} else {
			found = append(found, okf("%s: not found; nothing built in needs it", name))
		}
	}
	return found
}

func (d *doctor) shell(ctx context.Context) finding {
	if version := d.programVersion(ctx, "bash"); version != "" {
		return okf("bash: %s", version)
	}
	if path, err := exec.LookPath("sh"); err == nil {
		return warnf("install bash", "bash: not found; the tool rye/bash uses %s", path)
	}
	return warnf("install bash", "neither bash nor sh found; the tool rye/bash cannot run")
}

// programVersion is the first line a program says of its version, empty when
// there is no such program. One of the project is not run, and none finds the project's
// files where it begins.
func (d *doctor) programVersion(ctx context.Context, name string) string {
	environ := d.environ()
	path, err := process.Find(environ, name)
	if err != nil {
		if path, err = process.Find(d.sys.Environ, name); err == nil {
			return path + ", which lies in the project and is not run to tell its version"
		}
		return ""
	}
	asked := exec.CommandContext(ctx, path, "--version")
	asked.Dir, asked.Env = string(filepath.Separator), environ
	said, err := asked.Output()
	if err != nil {
		return path + ", which does not tell its version"
	}
	line, _, _ := strings.Cut(string(said), "\n")
	return plain.Shorten(plain.Line(line), maxSaid)
}

// Bounds of the disk space that is left, in bytes.
const (
	littleSpace = 1 << 30
	noSpace     = 64 << 20
)

func (d *doctor) disk(context.Context) []finding {
	free, err := spaceAt(d.project)
	if err != nil {
		return []finding{warnf("", "the space that is left cannot be found out: %v", err)}
	}
	return []finding{diskLeft(free)}
}

// spaceAt is how many bytes this user may still write where a folder is.
func spaceAt(dir string) (free uint64, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return stat.Bavail * uint64(stat.Bsize), nil
}

func diskLeft(free uint64) finding {
	said := fmt.Sprintf("%.1f GiB left", float64(free)/(1<<30))
	switch {
	case free < noSpace:
		return failf("make room", "%s", said)
	case free < littleSpace:
		return warnf("make room", "%s; transcripts and databases grow", said)
	}
	return okf("%s", said)
}

// fewOpenFiles is what a server with many threads comes to.
const fewOpenFiles = 1024

func (d *doctor) openFiles(context.Context) []finding {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return []finding{warnf("", "the limit cannot be found out: %v", err)}
	}
	if limit.Cur < fewOpenFiles {
		return []finding{warnf("ulimit -n 4096", "a process may open %d files, which is little for a server with many threads", limit.Cur)}
	}
	return []finding{okf("a process may open %d", limit.Cur)}
}

// editor says how an editor starts this program.
func (d *doctor) editor(context.Context) []finding {
	path, _, err := lastingPath(d.sys)
	if err != nil {
		return []finding{failf("", "this program's own file is not known, so it cannot start threads: %v", err)}
	}
	if isTemporary(path) {
		return []finding{warnf("go install ./cmd/rye-mcp", "%s is gone when it ends; an editor cannot start it", path)}
	}
	return []finding{okf("command %s, arguments --stdio --project %s (rye-mcp install puts it into a client)", path, d.project)}
}

// confinement tells whether the commands of tools can be confined here.
func (d *doctor) confinement(ctx context.Context) []finding {
	self, err := d.sys.Executable()
	if err != nil {
		return []finding{failf("", "this program's own file is not known: %v", err)}
	}
	has := (&confine.Confiner{Self: self}).Available(ctx)
	set, _, err := d.config.Tools()
	mode := confine.Mode(set.Execution.Confine)
	switch {
	case err != nil:
		return nil // which the check of settings tells
	case mode == confine.Off:
		return []finding{warnf("execution.confine: when-available in ~/.ai/config/agent/tools.yaml", "commands of tools are not confined: the settings say so")}
	case has.Whole():
		return []finding{okf("commands of tools are confined")}
	case mode == confine.Required:
		return []finding{failf("execution.confine: when-available in ~/.ai/config/agent/tools.yaml", "commands of tools do not run: the settings require that they are confined, and here %s", has)}
	}
	return []finding{warnf("allow user namespaces, and use a kernel with Landlock", "commands of tools are confined in part: %s", has)}
}
