package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	_ "embed" // the icon
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	homepage = "https://github.com/rye-mcp/rye-mcp"
	short    = "Delegates work to threads: LLM conversations with budgets, permissions and transcripts."
	long     = "Your model starts directives (Markdown files with a prompt, limits and permissions) as threads: whole LLM conversations " +
		"in processes of their own, side by side or in the background. Each has a budget, narrow rights and a signed transcript, and can be resumed."
)

//go:embed icon.png
var icon []byte

// entry is a file of an archive or a bundle.
type entry struct {
	name string
	data []byte
	mode int64
}

// archive is a build with the documents of the checkout and its SBOM as .tar.gz.
func archive(b build) ([]byte, error) {
	entries := []entry{{"rye-mcp.cdx.json", nil, 0o644}}
	var err error
	if entries[0].data, err = sbom(b); err != nil {
		return nil, err
	}
	for path, mode := range map[string]int64{b.path: 0o755, "README.md": 0o644, "CHANGELOG.md": 0o644} {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{filepath.Base(path), data, mode})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return tarball(b.name(), entries)
}

// tarball holds the entries below a folder. The same entries make the same bytes.
func tarball(folder string, entries []entry) ([]byte, error) {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	files := tar.NewWriter(zipped)
	for _, e := range entries {
		header := &tar.Header{Name: folder + "/" + e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: time.Unix(0, 0)}
		if err := files.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := files.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	err = zipped.Close()
	return out.Bytes(), err
}

// bundle is what MCPB clients install on one system.
type bundle struct {
	os, arch string // arch is universal for a binary of several
	version  string
	binary   []byte
}

func (b bundle) name() string { return "rye-mcp_" + b.version + "_" + b.os + "_" + b.arch + ".mcpb" }

// bundlesOf makes a bundle of each build. A manifest tells systems apart and not
// processors, so those of darwin share one binary.
func bundlesOf(builds []build) ([]bundle, error) {
	var bundles []bundle
	var slices []fatSlice
	for _, b := range builds {
		data, err := os.ReadFile(b.path)
		if err != nil {
			return nil, err
		}
		if b.os == "darwin" {
			slices = append(slices, fatSlice{b.arch, data})
			continue
		}
		bundles = append(bundles, bundle{b.os, b.arch, b.version, data})
	}
	if len(slices) == 0 {
		return bundles, nil
	}
	fat, err := universal(slices)
	return append(bundles, bundle{"darwin", "universal", builds[0].version, fat}), err
}

// manifest is the document of a bundle, of version 0.3 of its format
// (github.com/modelcontextprotocol/mcpb, MANIFEST.md).
type manifest struct {
	ManifestVersion  string                `json:"manifest_version"`
	Name             string                `json:"name"`
	DisplayName      string                `json:"display_name"`
	Version          string                `json:"version"`
	Description      string                `json:"description"`
	LongDescription  string                `json:"long_description"`
	Author           author                `json:"author"`
	Repository       repository            `json:"repository"`
	Homepage         string                `json:"homepage"`
	Icon             string                `json:"icon"`
	Server           bundleServer          `json:"server"`
	ToolsGenerated   bool                  `json:"tools_generated"`
	PromptsGenerated bool                  `json:"prompts_generated"`
	Keywords         []string              `json:"keywords"`
	Compatibility    compatibility         `json:"compatibility"`
	UserConfig       map[string]userConfig `json:"user_config"`
}

type author struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

type repository struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type bundleServer struct {
	Type       string  `json:"type"`
	EntryPoint string  `json:"entry_point"`
	Config     command `json:"mcp_config"`
}

type command struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

type compatibility struct {
	Platforms []string `json:"platforms"`
}

type userConfig struct {
	Type        string  `json:"type"`
	Title       string  `json:"title"`
	Description string  `json:"description"`
	Required    bool    `json:"required"`
	Sensitive   bool    `json:"sensitive,omitempty"`
	Default     *string `json:"default,omitempty"`
}

// manifestOf asks the user for the folder and, optionally, for keys. A client
// leaves the placeholder of what has no value as it is, so what is optional has
// the default "", which is no key.
func manifestOf(b bundle) manifest {
	none := ""
	key := func(vendor string) userConfig {
		return userConfig{"string", vendor + " API key", "Used by threads that run models of " + vendor + ".", false, true, &none}
	}
	return manifest{
		ManifestVersion: "0.3", Name: "rye-mcp", DisplayName: "rye", Version: strings.TrimPrefix(b.version, "v"),
		Description: short, LongDescription: long,
		Author: author{"rye-mcp", homepage}, Repository: repository{"git", homepage}, Homepage: homepage, Icon: "icon.png",
		Server: bundleServer{"binary", "server/rye-mcp", command{
			Command: "${__dirname}/server/rye-mcp", Args: []string{"--stdio", "--project", "${user_config.project}"},
			Env: map[string]string{"ANTHROPIC_API_KEY": "${user_config.anthropic_api_key}", "OPENAI_API_KEY": "${user_config.openai_api_key}"},
		}},
		ToolsGenerated: true, PromptsGenerated: true,
		Keywords:      []string{"agents", "delegation", "threads", "subagents", "budgets"},
		Compatibility: compatibility{[]string{b.os}},
		UserConfig: map[string]userConfig{
			"project": {Type: "directory", Title: "Project folder",
				Description: "The folder whose directives run and whose files threads may read.", Required: true},
			"anthropic_api_key": key("Anthropic"),
			"openai_api_key":    key("OpenAI"),
		},
	}
}

// zip is the bundle as its format has it. The same bundle makes the same bytes.
func (b bundle) zip() ([]byte, error) {
	described, err := json.MarshalIndent(manifestOf(b), "", "  ")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	files := zip.NewWriter(&out)
	files.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, e := range []entry{
		{"manifest.json", append(described, '\n'), 0o644}, {"icon.png", icon, 0o644}, {"server/rye-mcp", b.binary, 0o755},
	} {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		header.SetMode(os.FileMode(e.mode))
		w, err := files.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	err = files.Close()
	return out.Bytes(), err
}
