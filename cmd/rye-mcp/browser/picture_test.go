package browser_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/go-rod/rod/lib/proto"
)

// keepPicture writes what a tab shows into RYE_BROWSER_PICTURES, when it is set, so that
// it is seen why a test has failed.
func (b *tab) keepPicture() {
	dir := os.Getenv("RYE_BROWSER_PICTURES")
	if dir == "" {
		return
	}
	if err := b.picture(filepath.Join(dir, strings.ReplaceAll(b.Name(), "/", "_")+".png")); err != nil {
		b.Log(err)
	}
}

// picture writes what a tab shows as PNG.
func (b *tab) picture(path string) error {
	png, err := b.page.Screenshot(false, &proto.PageCaptureScreenshot{Format: proto.PageCaptureScreenshotFormatPng})
	if err != nil {
		return err
	}
	return os.WriteFile(path, png, 0o600)
}
