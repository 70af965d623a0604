package main

import (
	"archive/zip"
	"bytes"
	"debug/macho"
	"encoding/binary"
	"encoding/json"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// valid holds a document against a schema of testdata: that of server.json of
// 2025-12-11 and that of MCPB manifests 0.3, as published but for their descriptions
// and examples.
func valid(t *testing.T, schema string, document []byte) {
	t.Helper()
	compiled, err := jsonschema.Compile(filepath.Join("testdata", schema))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(document, &v); err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(v); err != nil {
		t.Errorf("%v\n%s", err, document)
	}
}

func TestBundle(t *testing.T) {
	t.Parallel()
	b := bundle{"linux", "amd64", "v1.2.3", []byte("a program")}
	first, err := b.zip()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := b.zip(); err != nil || !bytes.Equal(first, again) {
		t.Errorf("the same bundle has other bytes (%v)", err)
	}
	files, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
	if err != nil {
		t.Fatal(err)
	}
	content := map[string][]byte{}
	for _, f := range files.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if content[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		if executable := f.Mode()&0o111 != 0; executable != (f.Name == "server/rye-mcp") {
			t.Errorf("%s has mode %s", f.Name, f.Mode())
		}
	}
	if len(content) != 3 || string(content["server/rye-mcp"]) != "a program" || b.name() != "rye-mcp_v1.2.3_linux_amd64.mcpb" {
		t.Errorf("%s has %d files", b.name(), len(content))
	}
	valid(t, "mcpb-manifest.schema.json", content["manifest.json"])
	if picture, err := png.Decode(bytes.NewReader(content["icon.png"])); err != nil || picture.Bounds().Dx() != 512 {
		t.Errorf("the icon: %v", err)
	}
	// All that the command refers to is asked of the user.
	m := manifestOf(b)
	for _, text := range append(m.Server.Config.Args, m.Server.Config.Env["ANTHROPIC_API_KEY"], m.Server.Config.Env["OPENAI_API_KEY"]) {
		name, asked := strings.CutPrefix(text, "${user_config.")
		config := m.UserConfig[strings.TrimSuffix(name, "}")]
		if asked && !config.Required && config.Default == nil {
			t.Errorf("%s has no value when the user gives none", text)
		}
	}
}

func TestRegistryEntry(t *testing.T) {
	t.Parallel()
	data, err := registryEntry("v1.2.3", []file{{"a.mcpb", 1, strings.Repeat("0f", 32)}, {"b.mcpb", 1, strings.Repeat("a0", 32)}})
	if err != nil {
		t.Fatal(err)
	}
	valid(t, "server.schema.json", data)
	var entry serverJSON
	if err := json.Unmarshal(data, &entry); err != nil {
		t.Fatal(err)
	}
	if want := homepage + "/releases/download/v1.2.3/b.mcpb"; entry.Version != "1.2.3" || entry.Packages[1].Identifier != want {
		t.Errorf("version %s, package %s, want %s", entry.Version, entry.Packages[1].Identifier, want)
	}
}

// machO is the header of an empty program (<mach-o/loader.h>) and some bytes.
func machO(cpu uint32, size int) []byte {
	header := make([]byte, 0, size)
	for _, word := range []uint32{0xfeedfacf, cpu, 0, 2, 0, 0, 0, 0} {
		header = binary.LittleEndian.AppendUint32(header, word)
	}
	return append(header, bytes.Repeat([]byte{byte(cpu)}, size-len(header))...)
}

func TestUniversal(t *testing.T) {
	t.Parallel()
	intel, arm := machO(0x01000007, 5000), machO(0x0100000c, 70_001)
	data, err := universal([]fatSlice{{"amd64", intel}, {"arm64", arm}})
	if err != nil {
		t.Fatal(err)
	}
	fat, err := macho.NewFatFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		cpu  macho.Cpu
		data []byte
	}{{macho.CpuAmd64, intel}, {macho.CpuArm64, arm}} {
		arch := fat.Arches[i]
		if arch.Cpu != want.cpu || arch.Offset%(1<<arch.Align) != 0 || !bytes.Equal(data[arch.Offset:arch.Offset+arch.Size], want.data) {
			t.Errorf("slice %d: %+v", i, arch.FatArchHeader)
		}
	}
	if _, err := universal([]fatSlice{{"riscv64", intel}}); err == nil {
		t.Error("an unknown processor is accepted")
	}
}

func TestSBOM(t *testing.T) {
	t.Parallel()
	data, err := sbom(build{info: &debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: "example.com/a", Version: "v1.2.3"},
		Deps: []*debug.Module{
			{Path: "example.com/b", Version: "v0.1.0"},
			{Path: "example.com/old", Replace: &debug.Module{Path: "example.com/new", Version: "v2.0.0"}},
			{Path: "example.com/own", Replace: &debug.Module{Path: "./mcp/own", Version: "(devel)"}},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"specVersion": "1.6"`, "pkg:golang/example.com/a@v1.2.3", "pkg:golang/std@go1.26.8", "pkg:golang/example.com/b@v0.1.0", "pkg:golang/example.com/new@v2.0.0"} {
		if !bytes.Contains(data, []byte(want)) {
			t.Errorf("no %s in %s", want, data)
		}
	}
	if bytes.Contains(data, []byte("own")) {
		t.Errorf("a folder of the program is listed as a module: %s", data)
	}
}

// TestSums lets sha256sum read what was written, where it is installed.
func TestSums(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, err := write(dir, "a b.txt", []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed  a b.txt\n"; string(sums([]file{one})) != want {
		t.Errorf("got %q, want %q", sums([]file{one}), want)
	}
	if _, err := write(dir, "SHA256SUMS", sums([]file{one})); err != nil {
		t.Fatal(err)
	}
	check, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Skip("there is no sha256sum")
	}
	cmd := exec.CommandContext(t.Context(), check, "--check", "SHA256SUMS")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestMethods: a program that executes templates is refused.
func TestMethods(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "program")
	for content, refused := range map[string]bool{"\x00text/template.(*Template).Parse\x00": false, "\x00" + keepsMethods + "\x00": true} {
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := checkMethods(path); (err != nil) != refused {
			t.Errorf("%q: %v", content, err)
		}
	}
}
