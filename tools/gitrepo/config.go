package gitrepo

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// facts are the keys of a repository's configuration that say how its files are to
// be read, with the values that are taken over. None of them names a program or a
// path.
var facts = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"core.filemode": "true|false", "core.ignorecase": "true|false", "core.symlinks": "true|false", "core.precomposeunicode": "true|false",
		"core.autocrlf": "true|false|input", "core.eol": "lf|crlf|native", "core.sparsecheckout": "true|false", "core.sparsecheckoutcone": "true|false",
		"core.repositoryformatversion": "0|1", "extensions.objectformat": "sha1|sha256", "extensions.refstorage": "files|reftable",
	}
})

// Config is a configuration for a git folder of ours: a few facts about the
// repository, and nothing else of it.
func (r *Repository) Config() string {
	said := map[string]string{}
	if text, err := smallFile(filepath.Join(r.Common, "config")); err == nil {
		said = factsOf(string(text))
	}
	return configOf(said)
}

// converting are the facts by which git changes files on their way, or looks for what a
// git folder of ours does not have.
var converting = []string{"core.autocrlf", "core.eol", "core.sparsecheckout", "core.sparsecheckoutcone", "extensions.refstorage"}

// RawConfig is a configuration with the facts of another, for a git folder of our own
// that takes and gives files byte by byte.
func RawConfig(text string) string {
	said := factsOf(text)
	for _, key := range converting {
		delete(said, key)
	}
	return configOf(said)
}

func configOf(said map[string]string) string {
	var b strings.Builder
	b.WriteString("[core]\n\tbare = false\n\tfsmonitor = false\n\thooksPath = /dev/null\n\tattributesFile = /dev/null\n\tquotePath = false\n" +
		"\tbigFileThreshold = 8m\n\tpackedGitLimit = 256m\n[diff]\n\trenameLimit = 400\n[protocol]\n\tallow = never\n[submodule]\n\trecurse = false\n" +
		"[maintenance]\n\tauto = false\n[gc]\n\tauto = 0\n")
	for key, value := range said {
		section, name, _ := strings.Cut(key, ".")
		fmt.Fprintf(&b, "[%s]\n\t%s = %s\n", section, name, value)
	}
	if _, ok := said["core.repositoryformatversion"]; !ok {
		b.WriteString("[core]\n\trepositoryformatversion = 0\n")
	}
	return b.String()
}

var (
	sectionLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*\[\s*([A-Za-z0-9.-]+)\s*\]\s*([^#;]*)`) })
	otherLine   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*\[`) })
	factLine    = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*([A-Za-z0-9]*))?\s*(?:[#;].*)?$`)
	})
)

// factsOf reads the facts in a configuration. A line that is not of the simplest
// form says nothing.
func factsOf(text string) map[string]string {
	said, section := map[string]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if m := sectionLine().FindStringSubmatch(line); m != nil {
			section, line = strings.ToLower(m[1]), m[2]
		} else if otherLine().MatchString(line) {
			section = ""
			continue
		}
		m := factLine().FindStringSubmatch(line)
		if m == nil || section == "" {
			continue
		}
		key, value := section+"."+strings.ToLower(m[1]), strings.ToLower(m[2])
		if value == "" && !strings.Contains(line, "=") {
			value = "true"
		}
		for _, valid := range strings.Split(facts()[key], "|") {
			if valid != "" && value == valid {
				said[key] = value
			}
		}
	}
	return said
}
