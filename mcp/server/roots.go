package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// rootsTimeout bounds the wait for a client's roots: some declare them and
// never answer.
const rootsTimeout = 2 * time.Second

// ErrNoRoots means that the client of this call cannot be asked for roots:
// revision 2026-07-28 has no requests from server to client, a client over HTTP
// may read no stream, and one that did not answer before is not asked again.
var ErrNoRoots = errors.New("client has no roots to ask for")

// Roots asks the client of the call that ctx belongs to for its roots, the
// directories it works in, and returns those that are local files as absolute
// paths. It fails with [ErrNoRoots] where the client did not say it has any or
// cannot be asked, and with context.DeadlineExceeded when it does not answer
// within two seconds.
func (s *Server) Roots(ctx context.Context) ([]string, error) {
	client, ok := mcpserver.ClientSessionFromContext(ctx).(mcpserver.SessionWithClientInfo)
	if !ok || client.GetClientCapabilities().Roots == nil || mcpserver.IsModernRequest(ctx) {
		return nil, ErrNoRoots
	}
	ctx, cancel := context.WithTimeout(ctx, rootsTimeout)
	defer cancel()
	result, err := s.mcp.RequestRoots(ctx, mcp.ListRootsRequest{})
	if err != nil {
		return nil, fmt.Errorf("roots: %w", err)
	}
	var paths []string
	for _, root := range result.Roots {
		if path, ok := localPath(root.URI, runtime.GOOS); ok {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// localPath turns a file URI (RFC 8089) into an absolute path.
func localPath(uri, goos string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" {
		return "", false
	}
	path := u.Path
	if goos == "windows" {
		path = strings.TrimPrefix(path, "/") // file:///C:/x
	} else if !strings.HasPrefix(path, "/") {
		return "", false
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return "", false
	}
	return filepath.Clean(filepath.FromSlash(path)), true
}
