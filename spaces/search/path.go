package search

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// DefaultPath is where the index of a project is kept: in $RYE_CACHE_DIR, else
// in rye-mcp below $XDG_CACHE_HOME, else below the cache folder of the system.
// The name is a hash of the paths of project and user space, so that an index is
// of the same items whoever opens it.
func DefaultPath(projectDir, userDir string, getenv func(string) string) (string, error) {
	dir, err := CacheDir(getenv)
	if err != nil {
		return "", err
	}
	project, err := filepath.Abs(projectDir)
	if err != nil {
		return "", fmt.Errorf("search index of %s: %w", projectDir, err)
	}
	// Without links, so that two ways to one project lead to one index.
	if resolved, err := filepath.EvalSymlinks(project); err == nil {
		project = resolved
	}
	sum := sha256.Sum256([]byte(project + "\x00" + userDir))
	return filepath.Join(dir, fmt.Sprintf("search-%s-v%d.db", hex.EncodeToString(sum[:8]), schemaVersion)), nil
}

// CacheDir is the folder for what can be made again at any time.
func CacheDir(getenv func(string) string) (string, error) {
	if dir := getenv("RYE_CACHE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	// The XDG base directory specification has relative paths ignored.
	if dir := getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "rye-mcp"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the search index; set RYE_CACHE_DIR: %w", err)
	}
	return filepath.Join(dir, "rye-mcp"), nil
}
