// Package projectname says under which name the threads of a folder are known in a store
// that several machines share. The functions are pure.
package projectname

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

// Folder begins the names of folders that have none of their own. No other name does.
const Folder = "folder/"

// maxName bounds a name in bytes.
const maxName = 200

// Facts are what the name of a folder follows from.
type Facts struct {
	// Trusted says that the person has accepted the settings of the folder, or that it is
	// their own. A folder that is not never chooses its name.
	Trusted bool
	Set     string // store.project of the settings that count; empty: none
	Origin  string // URL of the remote origin, as git's configuration has it; empty: none
	Below   string // of the repository's working tree, where the folder is a part of it
	Host    string // name of this machine
	Path    string // of the folder, without symbolic links
}

// ErrNone says that a trusted folder has no name.
var ErrNone = errors.New("the project has no name that other machines know it by: it has no git remote origin, and store.project is not set")

// ErrBad says that a name cannot be used.
var ErrBad = errors.New("want a name such as team/app: up to 200 letters, digits, and . _ - ~ between slashes")

// Of is the name of a folder: what its settings say, else where its origin is, else none.
// A folder that is not trusted has a name that no other folder has.
func Of(f Facts) (string, error) {
	if !f.Trusted {
		sum := sha256.Sum256([]byte(f.Host + "\x00" + f.Path))
		return Folder + hex.EncodeToString(sum[:16]), nil
	}
	name := f.Set
	if origin := FromRemote(f.Origin); name == "" && origin != "" {
		name = strings.TrimSuffix(origin+"/"+f.Below, "/")
	}
	if name == "" {
		return "", ErrNone
	}
	return name, Check(name)
}

// Check says whether something can be the name of a project; the error is ErrBad.
func Check(name string) error {
	if len(name) > maxName || strings.HasPrefix(name+"/", Folder) {
		return ErrBad
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.Trim(part, ".") == "" { // empty, . and ..
			return ErrBad
		}
		for _, r := range part {
			if !strings.ContainsRune("._-~:", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
				return ErrBad
			}
		}
	}
	return nil
}

// FromRemote is the name that follows from the URL of a remote, host/path: the same
// however a clone reaches the repository. It is empty for what names no host, and for what
// makes no name.
func FromRemote(remote string) string {
	host, path := split(remote)
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || path == "" {
		return ""
	}
	name := host + "/" + strings.Trim(path, "/")
	if Check(name) != nil {
		return ""
	}
	return name
}

// usualPorts of the ways to reach a repository.
var usualPorts = map[string]string{"ssh": "22", "git+ssh": "22", "ssh+git": "22", "https": "443", "http": "80", "git": "9418"}

// split takes the URL of a remote apart, without user and password.
// Source: git-clone(1), GIT URLS.
func split(remote string) (host, path string) {
	scheme, rest, isURL := strings.Cut(remote, "://")
	if !isURL { // user@host:path
		host, path, scp := strings.Cut(remote, ":")
		if !scp || strings.ContainsAny(host, `/\`) || strings.Contains(path, `\`) {
			return "", ""
		}
		return host[strings.LastIndexByte(host, '@')+1:], path
	}
	scheme = strings.ToLower(scheme)
	if usualPorts[scheme] == "" { // file, or what is no way to a machine
		return "", ""
	}
	host, path, _ = strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	return strings.TrimSuffix(host, ":"+usualPorts[scheme]), path
}
