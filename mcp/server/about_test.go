package server_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
)

// Clients show what initialize says, and need it once: other results say name and
// version.
func TestAbout(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, newServer())
	raw, rpcErr := c.Request("initialize", map[string]any{"protocolVersion": servertest.Protocol})
	if rpcErr != nil {
		t.Fatal(rpcErr)
	}
	var result struct {
		ServerInfo json.RawMessage `json:"serverInfo"`
	}
	var info struct {
		Name, Title, Version, Description, WebsiteURL string
		Icons                                         []struct {
			Src, MIMEType string
			Sizes         []string
		}
	}
	if err := errors.Join(json.Unmarshal(raw, &result), json.Unmarshal(result.ServerInfo, &info)); err != nil {
		t.Fatal(err)
	}
	if info.Name != "rye" || info.Title == "" || info.Version != "1.2.3" || info.Description == "" || !strings.HasPrefix(info.WebsiteURL, "https://") || len(info.Icons) != 2 {
		t.Errorf("server info %s", result.ServerInfo)
	}
	if len(result.ServerInfo) > 1300 {
		t.Errorf("the server says %d bytes about itself", len(result.ServerInfo))
	}
	for _, icon := range info.Icons {
		encoded, ok := strings.CutPrefix(icon.Src, "data:"+icon.MIMEType+";base64,")
		data, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil {
			t.Fatalf("icon %s: %v", icon.Src, err)
		}
		checkIcon(t, icon.MIMEType, data)
	}

	modern := servertest.Start(t, newServer(), servertest.Speaking("2026-07-28"))
	for _, method := range []string{"tools/list", "server/discover"} {
		raw, rpcErr := modern.Request(method, map[string]any{})
		if rpcErr != nil {
			t.Fatal(rpcErr)
		}
		if whole := bytes.Contains(raw, []byte("data:image")); whole != (method == "server/discover") {
			t.Errorf("%s has the icons: %v", method, whole)
		}
	}
}

func checkIcon(t *testing.T, mediaType string, data []byte) {
	t.Helper()
	if mediaType == "image/png" {
		picture, err := png.Decode(bytes.NewReader(data))
		if err != nil || picture.Bounds().Dx() != 48 || picture.Bounds().Dy() != 48 {
			t.Errorf("the icon is no picture of 48 pixels: %v", err)
		}
		return
	}
	tokens := xml.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := tokens.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the icon is no drawing: %v", err)
		}
	}
}
