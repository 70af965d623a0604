package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plugin"
	"github.com/rye-mcp/rye-mcp/spaces/configfile"
	"github.com/rye-mcp/rye-mcp/spaces/foreign/clients"
	"github.com/rye-mcp/rye-mcp/spaces/regular"
)

const (
	// pluginManifest says whose a plugin is.
	pluginManifest = ".claude-plugin/plugin.json"
	// pluginServers is left out: the server has its entry beside those of others, so that
	// its tools are called mcp__rye__NAME, and twice it would be there twice.
	pluginServers = ".mcp.json"
)

// pluginDir is where the plugin goes to.
func (in *installer) pluginDir(c clients.Client) string {
	return filepath.Join(c.Plugins(in.machine), plugin.Name)
}

// pluginFiles are those that are written.
func (in *installer) pluginFiles(entry clients.Entry) ([]plugin.File, error) {
	all, err := plugin.Files(plugin.Server{Command: entry.Command, Project: in.project, Version: version()})
	if err != nil {
		return nil, err
	}
	var files []plugin.File
	for _, f := range all {
		if f.Path != pluginServers {
			files = append(files, f)
		}
	}
	return files, nil
}

// putPlugin writes the plugin beside the entry. A folder of its name that is somebody
// else's stays.
func (in *installer) putPlugin(c clients.Client, entry clients.Entry, done *installed) error {
	dir := in.pluginDir(c)
	if whose := pluginOwner(dir); whose == foreignPlugin {
		done.Notes = append(done.Notes, dir+" is not ours and stays as it is, so the plugin is not there")
		return nil
	}
	files, err := in.pluginFiles(entry)
	if err != nil {
		return err
	}
	done.Plugin = dir
	for _, f := range files {
		changed, err := in.putPluginFile(filepath.Join(dir, filepath.FromSlash(f.Path)), f.Data)
		if err != nil {
			return in.explainFile(c, err)
		}
		if changed {
			done.State = stateWritten
		}
	}
	return nil
}

// putPluginFile writes a file of the plugin. Of texts, which people may have changed, a
// copy is kept.
func (in *installer) putPluginFile(name string, content []byte) (changed bool, err error) {
	file, err := configfile.OpenOwn(name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if bytes.Equal(file.Content, content) {
		return false, nil
	}
	if file.Exists() && path.Ext(name) == ".json" {
		return true, file.Overwrite(content)
	}
	_, err = file.Replace(content, in.sys.Now())
	return true, err
}

// Owners of a folder of plugins.
type ownerOfPlugin int

const (
	noPlugin ownerOfPlugin = iota
	ourPlugin
	foreignPlugin
)

// pluginOwner reads the manifest of the plugin that is there.
func pluginOwner(dir string) ownerOfPlugin {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return noPlugin
	}
	file, err := configfile.OpenIn(dir, pluginManifest)
	if err != nil {
		return foreignPlugin
	}
	defer func() { _ = file.Close() }() // only read
	var manifest struct {
		Name   string `json:"name"`
		Author struct {
			Name string `json:"name"`
		} `json:"author"`
	}
	if json.Unmarshal(file.Content, &manifest) != nil || manifest.Name != plugin.Name || manifest.Author.Name != programName {
		return foreignPlugin
	}
	return ourPlugin
}

// maxPlugin bounds a file of the plugin, in bytes.
const maxPlugin = 16 << 20

// takePlugin takes our plugin away, but for what people have changed or added.
func (in *installer) takePlugin(c clients.Client, done *installed) error {
	dir := in.pluginDir(c)
	if pluginOwner(dir) != ourPlugin {
		return nil
	}
	files, err := in.pluginFiles(clients.Entry{Command: programName})
	if err != nil {
		return err
	}
	done.State, done.Plugin = stateRemoved, dir
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // files left in it are not held
	for _, f := range files {
		there, err := regular.ReadIn(root, f.Path, maxPlugin)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case path.Ext(f.Path) != ".json" && !bytes.Equal(there, f.Data):
			done.Notes = append(done.Notes, fmt.Sprintf("%s was changed and stays", filepath.Join(dir, filepath.FromSlash(f.Path))))
			continue
		}
		if err := root.Remove(f.Path); err != nil {
			return err
		}
		for above := path.Dir(f.Path); above != "." && root.Remove(above) == nil; above = path.Dir(above) { // folders that are empty then
		}
	}
	_ = os.Remove(dir) // when nothing is left in it
	return nil
}
