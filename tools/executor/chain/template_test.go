package chain

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func filled(vars map[string]string, params map[string]any) values {
	return values{variable: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }, params: params}
}

func TestFill(t *testing.T) {
	t.Parallel()
	v := filled(map[string]string{"HOME_OF": "/h", "EMPTY": "", "TRICK": "{name} ${HOME_OF}"},
		map[string]any{"name": "ada", "n": 3.0, "list": []any{"a", 1}, "on": true, "none": nil, "trick": "${HOME_OF} {name}", "a-b": "dash"})
	for template, want := range map[string]any{
		"": "", "plain": "plain", "${HOME_OF}/x": "/h/x", "${NOT_SET}": "", "${NOT_SET:-d e}": "d e", "${EMPTY:-d}": "d", "${HOME_OF:-d}": "/h",
		"{name}": "ada", "{n}": 3.0, "{list}": []any{"a", 1}, "{on}": true, "{none}": nil, "a {n} {on} {none} {list}": `a 3 true  ["a",1]`, "{a-b}": "dash",
		"{unknown}": "{unknown}", "{input:key}": "{input:key}", "${event.path}": "${event.path}", "${name}": "${name}", "{": "{", "${": "${", "$": "$", "{}": "{}",
		"${HOME_OF": "${HOME_OF", "{name": "{name", "{{name}}": "{ada}", "$${HOME_OF}": "$/h", "{trick}!": "${HOME_OF} {name}!", "${TRICK}": "{name} ${HOME_OF}",
		"${lower}{n}": "${lower}3", "{name}{name}": "adaada",
	} {
		if got := v.fill(template); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, want %#v", template, got, want)
		}
	}
	in := map[string]any{"a": []any{"{n}", map[string]any{"b": "${HOME_OF}"}}, "{n}": 1}
	if got := v.fill(in); !reflect.DeepEqual(got, map[string]any{"a": []any{3.0, map[string]any{"b": "/h"}}, "{n}": 1}) || in["a"].([]any)[0] != "{n}" {
		t.Errorf("%v of %v", got, in)
	}
	if got := v.text("?q={name}&h=${HOME_OF}{unknown}", strings.ToUpper); got != "?q=ADA&h=/H{unknown}" {
		t.Error(got)
	}
}

// A declared parameter without a value is nothing, where an unknown name stays.
func TestAbsent(t *testing.T) {
	t.Parallel()
	v := filled(nil, map[string]any{"gone": Absent{}, "null": nil, "n": 1})
	for template, want := range map[string]any{"{gone}": nil, "a {gone}b": "a b", "{unknown}": "{unknown}"} {
		if got := v.fill(template); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, want %#v", template, got, want)
		}
	}
	in := map[string]any{"gone": "{gone}", "null": "{null}", "list": []any{"{gone}", "{n}"}, "text": "{gone}!", "unknown": "{x}"}
	if got := v.fill(in); !reflect.DeepEqual(got, map[string]any{"null": nil, "list": []any{1}, "text": "!", "unknown": "{x}"}) {
		t.Errorf("got %v", got)
	}
}

// A value that was put in is not looked at again, whatever it says.
func TestFilledOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hostile := rapid.StringOf(rapid.SampledFrom([]rune("${}AB:-ab_ ")))
		v := filled(map[string]string{"A": hostile.Draw(t, "A"), "B": hostile.Draw(t, "B")},
			map[string]any{"a": hostile.Draw(t, "a"), "b": hostile.Draw(t, "b")})
		pieces := map[string]string{"${A}": v.must("A"), "${B}": v.must("B"), "{a}": v.params["a"].(string), "{b}": v.params["b"].(string), " ": " ", "x": "x"}
		var template, want strings.Builder
		for _, piece := range rapid.SliceOf(rapid.SampledFrom([]string{"${A}", "${B}", "{a}", "{b}", " ", "x"})).Draw(t, "template") {
			template.WriteString(piece)
			want.WriteString(pieces[piece])
		}
		if got := v.text(template.String(), nil); got != want.String() {
			t.Fatalf("%q: %q, want %q", template.String(), got, want.String())
		}
	})
}

func (v values) must(name string) string { value, _ := v.variable(name); return value }

// A template can say anything: it ends, and without values it stays as it is.
func FuzzFill(f *testing.F) {
	for _, seed := range []string{"", "${A}", "{a}", "${A:-{a}}", "{{a}}", "${${A}}", "$", "{", "${A:-", "{a", "é{a}", "\x00{a}"} {
		f.Add(seed)
	}
	none := filled(nil, nil)
	v := filled(map[string]string{"A": "{a}${A}"}, map[string]any{"a": "${A}{a}"})
	f.Fuzz(func(t *testing.T, template string) {
		if got := none.text(template, nil); !strings.Contains(template, "${") && got != template {
			t.Errorf("%q became %q", template, got)
		}
		if got := v.text(template, nil); len(got) > 10*len(template)+10 {
			t.Errorf("%q grew to %d bytes", template, len(got))
		}
	})
}

func FuzzDotenv(f *testing.F) {
	f.Add([]byte("A=1\nexport B='x y' # c\n#C=1\nD=\"q\" tail\nE=a #b\n=x\nF\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for name, value := range parseDotenv(text) {
			if name == "" || strings.ContainsAny(name, " \t\x00=") || strings.ContainsRune(value, 0) {
				t.Errorf("%q=%q", name, value)
			}
		}
	})
}

func TestDotenv(t *testing.T) {
	t.Parallel()
	got := parseDotenv([]byte("A=1\r\nexport B='x y' # c\n#C=1\nD=\"q#\" tail\nE=a #b\n=x\nF\nG=a=b\n"))
	if want := map[string]string{"A": "1", "B": "x y", "D": "q#", "E": "a", "G": "a=b"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

func TestOlder(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]bool{{"20.20.2", "22.18"}: true, {"22.18", "22.18"}: false, {"22.18.0", "22.18"}: false, {"22.6.9", "22.18"}: true, {"23", "22.18"}: false, {"", "1"}: true} {
		if older(pair[0], pair[1]) != want {
			t.Error(pair, !want)
		}
	}
}
