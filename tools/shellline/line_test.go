package shellline

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// mark is where a value goes in the templates of these tests.
const mark = "@@"

func build(template, value string) (string, error) {
	var l Line
	for i, text := range strings.Split(template, mark) {
		if i > 0 {
			l.Value(value)
		}
		l.Text(text)
	}
	return l.Finish()
}

func shells(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, name := range []string{"bash", "sh"} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		t.Skip("there is no shell")
	}
	return found
}

func run(shell, dir, line string) string {
	cmd := exec.Command(shell, "-c", line)
	cmd.Dir = dir
	out, _ := cmd.Output() // a line that fails has printed something else
	return string(out)
}

// TestValueIsItself: a command gets a value as it is, whatever it is made of.
func TestValueIsItself(t *testing.T) {
	t.Parallel()
	templates := []string{
		`printf '<%s>' @@`, `printf '<%s>' "@@"`, `printf '<%s>' '@@'`, `printf '<%s>' ""@@''`, "echo a # it's @@\nprintf '<%s>' @@",
		`x=@@; printf '<%s>' "$x"`, `x="$(printf '%s.' @@)"; printf '<%s>' "${x%.}"`, `(printf '<%s>' "@@")`, `echo "a'b" >/dev/null; printf '<%s>' @@`,
		"printf '<%s>' \\\n@@", "cat <<'EOF' >/dev/null\n@@\nEOF\nprintf '<%s>' @@", "cat <<-EOF >/dev/null\n\tit's @@\n\tEOF\nprintf '<%s>' @@",
		`printf '<%s>' "$(printf '%s' "a" >/dev/null; printf '%s' '')"@@`, "case a in a) printf '<%s>' @@;; esac", `echo \a#b >/dev/null; printf '<%s>' @@`, `echo \'#x >/dev/null; printf '<%s>' "@@"`,
	}
	dir := t.TempDir() // a value that is more than itself writes there
	for _, shell := range shells(t) {
		rapid.Check(t, func(t *rapid.T) {
			value := rapid.StringOf(rapid.RuneFrom([]rune("ab '\"\\$`!*?[]{}()<>|&;#~=%\t\n-é"))).Draw(t, "value")
			template := rapid.SampledFrom(templates).Draw(t, "template")
			line, err := build(template, value)
			if err != nil {
				t.Skip(err.Error())
			}
			want := "<" + value + ">"
			if got := run(shell, dir, line); !strings.HasSuffix(got, want) {
				t.Fatalf("%s\ngave %q, want %q", line, got, want)
			}
		})
	}
}

func TestHeredoc(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ template, value, want string }{
		{"cat <<EOF\na @@ b\nEOF\n", "$HOME `id` \\ '\"", "a $HOME `id` \\ '\" b\n"},
		{"cat <<'EOF'\na @@ b\nEOF\necho end", "$HOME\n`id`", "a $HOME\n`id` b\nend\n"},
		{"cat <<A; cat <<'B'\n@@\nA\n@@\nB\n", "$x", "$x\n$x\n"},
	} {
		line, err := build(c.template, c.value)
		if err != nil {
			t.Fatal(err)
		}
		if got := run(shells(t)[0], "", line); got != c.want {
			t.Errorf("%s\ngave %q, want %q", line, got, c.want)
		}
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ template, value string }{
		{"cat <<EOF\n@@\nEOF\n", "x\nEOF\nid"}, {"cat <<'EOF'\nEO@@\nEOF\n", "F\nid"}, {"cat <<@@\n", "x"}, {"cat <<E@@\n", "x"},
		{"cat <<EOF\n$(echo @@)\nEOF\n", ";id"}, {"echo `echo @@`", "$(id)"}, {"echo ${x:-@@}", "$(id)"}, {"echo $((1+@@))", "a[$(id)]"},
		{"((x=@@))", "a[$(id)]"}, {`echo \@@`, "a b"}, {`echo "$@@"`, "(id)"}, {"echo $@@", "x"}, {"echo $(case a in b) echo;; esac; echo @@)", ";id"},
		{"echo @@", "\x00"}, {"cat <<E\n$@@\nE\n", "(id)"}, {"cat <<E\n\\@@\nE\n", "$(id)"},
	} {
		if line, err := build(c.template, c.value); !errors.Is(err, ErrPlace) {
			t.Errorf("%q with %q: %q, %v", c.template, c.value, line, err)
		}
	}
	for _, c := range []struct{ template, value, want string }{
		{"echo `echo @@`", "a.txt", "echo `echo a.txt`"}, {"echo $((1+@@))", "12", "echo $((1+12))"}, {"echo @@", "", "echo ''"},
		{"a '@@' \"@@\" @@", "it's", `a 'it'\''s' "it's" 'it'\''s'`},
	} {
		if line, err := build(c.template, c.value); err != nil || line != c.want {
			t.Errorf("%q: %q, %v", c.template, line, err)
		}
	}
}

// TestAttackValueInCommandLine: a value with quotes, commands and line breaks is put into any place of a command line that its author has written. The shell runs nothing of it.
func TestAttackValueInCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pieces := []string{
		" ", `"`, "'", "`", "$(", ")", "${", "}", `\`, "$", "((", "))", "$((", "<<EOF\n", "<<'EOF'\n", "<<-E\n", "EOF\n", "E\n", "\n", "#", "echo ", "case x in ", "a) ",
		" esac", ";", "|", "x", "$'", "&& ", "{ ", "; }", "[", "]", "<", "(", "$[", "it's ", mark, mark, mark,
	}
	values := []string{
		"$(>hit)", "`>hit`", ";>hit;", "\n>hit\n", "'>hit'", "';>hit;'", `";>hit;"`, ")>hit;(", "EOF\n>hit\n", "\nEOF\n>hit\n", "E\n>hit\n", "};>hit;{", "\\';>hit #",
		"'\n>hit\n'", "))\n>hit\n((", "a[$(>hit)]", "`\n>hit\n`", "|>hit", "&>hit", `\`, "\n\tE\n>hit\n", "# '\n>hit", "(>hit)", "{x:=$(>hit)}",
	}
	for _, shell := range shells(t) {
		rapid.Check(t, func(t *rapid.T) {
			template := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 12).Draw(t, "template"), "")
			line, err := build(template, rapid.SampledFrom(values).Draw(t, "value"))
			if err != nil {
				return
			}
			run(shell, dir, line)
			if _, err := os.Stat(filepath.Join(dir, "hit")); err == nil {
				_ = os.Remove(filepath.Join(dir, "hit"))
				t.Fatalf("the shell %s ran it: %q", shell, line)
			}
		})
	}
}

// FuzzLine: putting a line together never panics, and the text outside of values
// is as it was written.
func FuzzLine(f *testing.F) {
	f.Add("echo '@@' <<E\n@@\nE\n", "v")
	f.Fuzz(func(t *testing.T, template, value string) {
		line, err := build(template, value)
		if err == nil && !strings.Contains(template, mark) && line != template {
			t.Errorf("%q became %q", template, line)
		}
	})
}
