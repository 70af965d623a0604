package config

import (
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// scriptsDir is where scripts of the scripted provider stand.
const scriptsDir = "agent/scripts"

// LeftOut says what of the project's settings does not count, at most one notice
// for each key, or for each file that counts as a whole or not at all. Files that
// cannot be used are told of by those who read them.
func (sn *Snapshot) LeftOut() []Notice {
	all := sn.leftOut()
	return all[:min(len(all), maxNotices)]
}

func (sn *Snapshot) leftOut() []Notice {
	var all []Notice
	for _, k := range []kind{agentKind, coordinationKind, resilienceKind, riskKind, toolsKind, notifyKind, memoryKind, storeKind, mirrorKind} {
		s, _ := sn.load(k) // a file that cannot be used is an error wherever it is needed
		all = append(all, s.leftOut...)
	}
	project := sn.project()
	for _, file := range project.wholeFiles() {
		if _, notice := project.whole(file); notice != nil {
			all = append(all, *notice)
		}
		if k, known := kindOf(file); known && k.merged {
			s, _ := sn.load(k)
			all = append(all, slices.DeleteFunc(slices.Clone(s.leftOut), func(n Notice) bool { return len(n.Key) == 0 })...)
		}
	}
	return all
}

// wholeFiles are the files of a project, as it is or as it was accepted, that count
// as a whole or not at all.
func (p project) wholeFiles() []string {
	files := []string{hooksKind.files[0], errorKind.files[0]}
	for _, from := range []place{p.present, p.accepted} {
		for _, dir := range []string{providersDir, scriptsDir} {
			if from == nil {
				continue
			}
			names, _ := from.list(dir) // readers of the folder say what is wrong with it
			for _, name := range names {
				if path.Ext(name) == ".yaml" && item.IsPlain(name) {
					files = append(files, dir+"/"+name)
				}
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// Changes is [Snapshot.LeftOut] key by key for all files, for a person who decides
// about them.
func (sn *Snapshot) Changes() []Notice {
	var all []Notice
	for _, n := range sn.leftOut() {
		if len(n.Key) > 0 {
			all = append(all, n)
			continue
		}
		all = append(all, sn.details(n)...)
	}
	return all
}

// details is what a file would change that counts as a whole or not at all.
func (sn *Snapshot) details(n Notice) []Notice {
	k, known := kindOf(n.File)
	if !known {
		return []Notice{n}
	}
	var s settings
	project, holds := sn.project(), map[string]any{}
	for _, from := range slices.Concat(sn.own, []place{project.accepted}) {
		if from == nil {
			continue
		}
		layers, _ := sn.read(&s, k, from)
		merge(holds, mergedOf(layers))
	}
	present, err := sn.read(&s, k, project.present)
	if err != nil {
		n.Fault = err.Error()
		return []Notice{n}
	}
	if len(present) == 0 { // the accepted file is gone
		return []Notice{n}
	}
	rules, err := sn.loader.rules.get(k.schema)
	if err != nil {
		n.Fault = err.Error()
		return []Notice{n}
	}
	says := mergedOf(present, holds)
	var all []Notice
	differences(holds, says, nil, func(at []string, holds, says any) {
		n, r := n, rules.at(at)
		n.Key, n.Holds, n.Says, n.Line = at, holds, says, present[0].writtenAt(at)
		n.UserOnly = r != nil && r.UserOnly
		all = append(all, n)
	})
	return all
}

// kindOf is the kind of a file that counts as a whole or not at all.
func kindOf(file string) (kind, bool) {
	switch name := path.Base(file); {
	case file == hooksKind.files[0]:
		return hooksKind, true
	case file == errorKind.files[0]:
		return errorKind, true
	case path.Dir(file) == providersDir:
		return providerKind(name[:len(name)-len(path.Ext(name))]), true
	}
	return kind{}, false
}

// differences visits the values in which two sets of settings differ; those of a
// list one by one.
func differences(holds, says any, at []string, visit func(at []string, holds, says any)) {
	if a, ok := holds.(map[string]any); ok || holds == nil {
		if b, ok := says.(map[string]any); ok {
			keys := slices.Collect(maps.Keys(b))
			for key := range a {
				if _, both := b[key]; !both {
					keys = append(keys, key)
				}
			}
			slices.Sort(keys)
			for _, key := range keys {
				differences(a[key], b[key], below(at, key), visit)
			}
			return
		}
	}
	if same(holds, says) {
		return
	}
	list, _ := says.([]any)
	before, _ := holds.([]any)
	if len(list) == 0 || !slices.ContainsFunc(list, isMap) {
		visit(at, holds, says)
		return
	}
	for i, element := range list {
		if !slices.ContainsFunc(before, func(known any) bool { return same(known, element) }) {
			visit(below(at, strconv.Itoa(i)), nil, element)
		}
	}
	for _, element := range before {
		if !slices.ContainsFunc(list, func(known any) bool { return same(known, element) }) {
			visit(at, element, nil)
		}
	}
}

func isMap(v any) bool {
	_, is := v.(map[string]any)
	return is
}
