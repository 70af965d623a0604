package app

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/mcp/page"
)

// transport takes the place of app.js and api.js: its requests go through the host.
//
//go:embed transport.js
var transport string

// Forms of lines of the page's modules. Only a server that is asked for the app needs
// them, so they are compiled then.
const (
	// importForm is how they import: names of a neighbour, renamed nowhere.
	importForm = `(?m)^import \{[^}]*\} from "\./([a-z]+)\.js";\n`
	exportForm = `(?m)^export (async function|function|const|let|class)\b`
)

// document is the app as one file: a frame without network loads nothing else. It is put
// together when the first client asks for it.
var document = sync.OnceValues(func() (string, error) {
	script, err := script()
	if err != nil {
		return "", err
	}
	var styles strings.Builder
	for _, name := range []string{"style.css", "views.css"} {
		text, known := page.File(name)
		if !known {
			return "", fmt.Errorf("the page has no %s", name)
		}
		styles.Write(text)
	}
	style := styles.String()
	policy := fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'; form-action 'none'",
		hashOf(script), hashOf(style))
	return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="` + policy + `">` +
		`<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>rye</title>` +
		"<style>" + style + `</style></head><body><div id="app"></div><script type="module">` + script + "</script></body></html>\n", nil
})

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// script is the modules of the page that the transport needs, each behind those that it
// imports, and the transport.
func script() (string, error) {
	importLine, exported := regexp.MustCompile(importForm), regexp.MustCompile(exportForm)
	var b strings.Builder
	seen := map[string]bool{}
	var take func(name, text string) error
	take = func(name, text string) error {
		for _, found := range importLine.FindAllStringSubmatch(text, -1) {
			other := found[1] + ".js"
			if seen[other] {
				continue
			}
			seen[other] = true
			content, known := page.File(other)
			if !known {
				return fmt.Errorf("%s imports %s, which there is not", name, other)
			}
			if err := take(other, string(content)); err != nil {
				return err
			}
		}
		b.WriteString(exported.ReplaceAllString(importLine.ReplaceAllString(text, ""), "$1"))
		return nil
	}
	if err := take("transport.js", transport); err != nil {
		return "", err
	}
	if strings.Contains(strings.ToLower(b.String()), "</script") || strings.Contains(b.String(), "<!--") {
		return "", fmt.Errorf("the script of the app would end within itself")
	}
	return b.String(), nil
}
