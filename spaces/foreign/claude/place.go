package claude

import (
	"path"
	"strings"
)

// Form is what a file is to the program that it was written for.
type Form int

// The forms.
const (
	Agent   Form = iota // a system prompt; what is asked of it comes apart from it
	Command             // a prompt with places for arguments
	Skill               // a prompt in a folder with files of its own
)

// Place is a folder of a project, or of the user, in which another program keeps
// files of one form.
type Place struct {
	Folder string // below the folder of the project or the user
	Prefix string // of the ids of the items in it, with a slash at its end
	Form   Form
}

// Prefix begins the ids of all items of this package.
const Prefix = "claude/"

// SkillFile is the file of a skill, in the folder that has its name.
const SkillFile = "SKILL.md"

// skills is the prefix of all skills: the same ones are found in several places, often
// by links.
const skills = Prefix + "skills/"

// Places lists them; of an id that several have the first one counts. The folders of
// Claude Code come first, then the one that programs share (agentskills.io), then
// those of Codex, Gemini, OpenCode, Cursor and Copilot.
func Places() []Place {
	places := []Place{
		{".claude/agents", Prefix + "agents/", Agent},
		{".claude/commands", Prefix + "commands/", Command},
	}
	for _, folder := range []string{".claude", ".agents", ".codex", ".gemini", ".opencode", ".cursor", ".github"} {
		places = append(places, Place{folder + "/skills", skills, Skill})
	}
	return places
}

// File is where an item of the place lies in its folder. It is not ok for an id that
// is no item of the place.
func (p Place) File(id string) (name string, ok bool) {
	name, ok = strings.CutPrefix(id, p.Prefix)
	switch {
	case !ok || name == "":
		return "", false
	case p.Form == Skill:
		return name + "/" + SkillFile, !strings.Contains(name, "/")
	default:
		return name + ".md", !p.leftOut(name)
	}
}

// ID is the item whose file a name in the folder is. It is not ok for a file that is
// no item.
func (p Place) ID(name string) (id string, ok bool) {
	if p.Form == Skill {
		dir, file := path.Split(name)
		dir = strings.TrimSuffix(dir, "/")
		return p.Prefix + dir, file == SkillFile && dir != "" && !strings.Contains(dir, "/")
	}
	base, ok := strings.CutSuffix(name, ".md")
	return p.Prefix + base, ok && base != "" && !p.leftOut(base)
}

// leftOut reports whether a file is about the others beside it, or is one that stands
// for a directive, see [ExportFolder].
func (p Place) leftOut(name string) bool {
	return strings.EqualFold(path.Base(name), "README") || strings.HasPrefix(p.Folder+"/"+name, ExportFolder+"/")
}

// Depth is how far below its folder the files of a place lie at most; 0: anywhere.
func (p Place) Depth() int {
	if p.Form == Skill {
		return 2
	}
	return 0
}

// FormOf is the form of the item with an id of this package.
func FormOf(id string) (Form, bool) {
	for _, p := range Places() {
		if _, ok := p.File(id); ok {
			return p.Form, true
		}
	}
	return 0, false
}

// SplitSkill takes the id of a file of a skill apart: claude/skills/pdf/forms/a.md is
// the file forms/a.md of the skill claude/skills/pdf.
func SplitSkill(id string) (skill, file string, ok bool) {
	rest, ok := strings.CutPrefix(id, skills)
	name, file, found := strings.Cut(rest, "/")
	return skills + name, file, ok && found && name != "" && file != ""
}
