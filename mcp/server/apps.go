package server

import (
	"context"
	"maps"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// appsExtension is MCP Apps, revision 2026-01-26:
// https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx
const appsExtension = "io.modelcontextprotocol/ui"

// AppType is the media type of the documents of apps.
const AppType = "text/html;profile=mcp-app"

// uiMeta is the key of what a tool says of apps.
const uiMeta = "ui"

// AppOnly is the [Untyped.Meta] of a tool that only the app of a URI calls, and no model.
func AppOnly(uri string) map[string]any {
	return map[string]any{uiMeta: map[string]any{"resourceUri": uri, "visibility": []string{"app"}}}
}

// OfferApp has clients that show apps show the one of a URI with the answers of some
// tools. All others are offered neither that nor the tools that only apps call. It is
// called before the first client comes.
func (s *Server) OfferApp(uri string, shownWith ...string) {
	mcpserver.WithToolFilter(func(ctx context.Context, tools []mcp.Tool) []mcp.Tool {
		shows := showsApps(ctx)
		offered := make([]mcp.Tool, 0, len(tools))
		for _, t := range tools {
			if !shows && ofApp(t) {
				continue
			}
			if shows && slices.Contains(shownWith, t.Name) {
				t.Meta = withApp(t.Meta, uri)
			}
			offered = append(offered, t)
		}
		return offered
	})(s.mcp)
}

func ofApp(t mcp.Tool) bool {
	if t.Meta == nil {
		return false
	}
	_, is := t.Meta.AdditionalFields[uiMeta]
	return is
}

// withApp is what a tool says, and its app. All clients share what it said before.
func withApp(meta *mcp.Meta, uri string) *mcp.Meta {
	fields := map[string]any{}
	if meta != nil {
		maps.Copy(fields, meta.AdditionalFields)
	}
	fields[uiMeta] = map[string]any{"resourceUri": uri}
	return &mcp.Meta{AdditionalFields: fields}
}

// showsApps reports whether the client that ctx belongs to shows documents of apps.
func showsApps(ctx context.Context) bool {
	var declared any
	if info := mcpserver.RequestProtocolInfoFromContext(ctx); info != nil && info.Modern {
		if info.ClientCapabilities == nil {
			return false
		}
		declared = info.ClientCapabilities.Extensions[appsExtension]
	} else if session, ok := mcpserver.ClientSessionFromContext(ctx).(mcpserver.SessionWithClientInfo); ok {
		declared = session.GetClientCapabilities().Extensions[appsExtension]
	}
	settings, ok := declared.(map[string]any)
	if !ok {
		return false
	}
	types, ok := settings["mimeTypes"].([]any)
	return ok && slices.Contains(types, any(AppType))
}
