package main

import (
	"bytes"
	"runtime/debug"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

// sbom lists the modules that are linked into a build, as CycloneDX 1.6.
func sbom(b build) ([]byte, error) {
	bom := cyclonedx.NewBOM()
	main := component(&b.info.Main, cyclonedx.ComponentTypeApplication)
	bom.Metadata = &cyclonedx.Metadata{Component: &main}
	modules := []cyclonedx.Component{component(&debug.Module{Path: "std", Version: b.info.GoVersion}, cyclonedx.ComponentTypeLibrary)}
	for _, module := range b.info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		if strings.HasPrefix(module.Path, ".") { // a folder of this program
			continue
		}
		modules = append(modules, component(module, cyclonedx.ComponentTypeLibrary))
	}
	bom.Components = &modules
	var out bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
	return out.Bytes(), err
}

// component names a module by its package URL (purl-spec, type golang).
func component(m *debug.Module, kind cyclonedx.ComponentType) cyclonedx.Component {
	purl := "pkg:golang/" + m.Path + "@" + m.Version
	return cyclonedx.Component{BOMRef: purl, Type: kind, Name: m.Path, Version: m.Version, PackageURL: purl}
}
