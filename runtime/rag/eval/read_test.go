package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	t.Parallel()
	const lines = `
{"question": "which key?", "evidence": ["a"]}
{"id": "a", "text": "ids are UUIDs"}

{"text": "more", "id": "b"}
{"question": "nothing?", "evidence": []}
`
	got, err := Read(strings.NewReader(lines))
	want := Set{
		Documents: []Document{{"a", "ids are UUIDs"}, {"b", "more"}},
		Questions: []Question{{"which key?", []string{"a"}}, {"nothing?", []string{}}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v", got, err)
	}
}

func TestReadErrors(t *testing.T) {
	t.Parallel()
	const good = `{"id":"a","text":"x"}` + "\n" + `{"question":"q","evidence":["a"]}` + "\n"
	for name, tt := range map[string]struct {
		lines, reason string
		line          int
	}{
		"no JSON":             {good + "words", "it is no JSON object", 3},
		"a list":              {good + "[1]", "it is no JSON object", 3},
		"does not end":        {good + `{"id":"b","text":"x"`, "does not end", 3},
		"more behind":         {good + `{"id":"b","text":"x"} {}`, "something follows", 3},
		"comma behind":        {good + `{"id":"b","text":"x"},`, "something follows", 3},
		"twice":               {good + `{"id":"b","id":"c","text":"x"}`, `"id" stands twice`, 3},
		"other spelling":      {good + `{"ID":"b","text":"x"}`, `"ID" is unknown`, 3},
		"unknown":             {good + `{"id":"b","text":"x","title":"t"}`, `"title" is unknown`, 3},
		"neither":             {good + `{"id":"b"}`, "neither", 3},
		"both":                {good + `{"text":"b","question":"c"}`, "want one of them", 3},
		"no id":               {good + `{"text":"b"}`, "id: missing", 3},
		"id a number":         {good + `{"id":1,"text":"b"}`, "id: 1 is of the wrong type", 3},
		"id null":             {good + `{"id":null,"text":"b"}`, "id: null is of the wrong type", 3},
		"id empty":            {good + `{"id":"","text":"b"}`, "id: want text of one line", 3},
		"id of two lines":     {good + `{"id":"a\nb","text":"b"}`, "id: want text of one line", 3},
		"id again":            {good + `{"id":"a","text":"b"}`, "earlier line", 3},
		"text empty":          {good + `{"id":"b","text":" "}`, "text: want 1 to", 3},
		"text long":           {good + `{"id":"b","text":"` + strings.Repeat("x", 70_000) + `"}`, "text: want 1 to", 3},
		"question empty":      {good + `{"question":"","evidence":[]}`, "question: want 1 to", 3},
		"no evidence":         {good + `{"question":"q"}`, "evidence: missing", 3},
		"evidence null":       {good + `{"question":"q","evidence":null}`, "evidence: null is of the wrong type", 3},
		"evidence no list":    {good + `{"question":"q","evidence":"a"}`, "evidence: \"a\" is of the wrong type", 3},
		"evidence twice":      {good + `{"question":"q","evidence":["a","a"]}`, "stands twice", 3},
		"evidence unknown":    {`{"question":"q","evidence":["z"]}` + "\n" + good, `no document has the id "z"`, 1},
		"no UTF-8":            {good + "{\"id\":\"\xff\",\"text\":\"b\"}", "no UTF-8", 3},
		"a line of megabytes": {good + `{"id":"b","text":"` + strings.Repeat("x", MaxLine) + `"}`, "more than 1048576 bytes", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Read(strings.NewReader(tt.lines))
			wrong, is := errors.AsType[*LineError](err)
			if !is || wrong.Line != tt.line || !strings.Contains(wrong.Reason, tt.reason) {
				t.Errorf("got %v, want line %d: %s", err, tt.line, tt.reason)
			}
		})
	}
	for _, lines := range []string{"", "\n\n", `{"id":"a","text":"x"}`, `{"question":"q","evidence":[]}`} {
		if _, err := Read(strings.NewReader(lines)); !errors.Is(err, ErrEmpty) {
			t.Errorf("%q: %v", lines, err)
		}
	}
}

// FuzzRead: what is read can be written and read again as the same, and what is refused
// names a line that there is.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","text":"x"}` + "\n" + `{"question":"q","evidence":["a"]}`, "{", `{"id":"a","id":"b","text":""}`, "[]\n{}", "\xff", `{"question":"q","evidence":[null]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := Read(strings.NewReader(string(data)))
		if err != nil {
			if wrong, is := errors.AsType[*LineError](err); is && (wrong.Line < 1 || wrong.Line > 1+strings.Count(string(data), "\n")) {
				t.Fatalf("of %q: %v", data, err)
			}
			return
		}
		var again strings.Builder
		for _, d := range set.Documents {
			fmt.Fprintln(&again, object(map[string]any{"id": d.ID, "text": d.Text}))
		}
		for _, q := range set.Questions {
			fmt.Fprintln(&again, object(map[string]any{"question": q.Text, "evidence": q.Evidence}))
		}
		if other, err := Read(strings.NewReader(again.String())); err != nil || !reflect.DeepEqual(set, other) {
			t.Fatalf("of %q: %+v, and again %+v, %v", data, set, other, err)
		}
	})
}

func object(fields map[string]any) string {
	line, err := json.Marshal(fields)
	if err != nil {
		return err.Error()
	}
	return string(line)
}
