package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

func echo(_ context.Context, env Env, in sample) (any, error) {
	switch in.Path {
	case "panic":
		panic("lost")
	case "fault":
		return nil, Faultf(CodeStaleLine, "gone").With("path", in.Path)
	}
	return map[string]any{"project": env.Project, "in": in}, nil
}

func TestCallFillsDefaults(t *testing.T) {
	t.Parallel()
	got := New(Definition{ID: "a/b"}, func(_ context.Context, _ Env, in sample) (any, error) { return in, nil })
	for args, want := range map[string]struct {
		mode  string
		make  bool
		limit int
	}{
		`{"path":"x"}`:                           {"all", true, 7},
		`{"path":"x","make":false,"limit":1}`:    {"all", false, 1},
		`{ "path":"x","mode":"any","make":true}`: {"any", true, 7},
	} {
		out, err := got.Call(t.Context(), Env{}, json.RawMessage(args))
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		in := out.(sample)
		if in.Mode != want.mode || in.Make != want.make || *in.Limit != want.limit {
			t.Errorf("%s: got mode %s, make %v, limit %d; want %+v", args, in.Mode, in.Make, *in.Limit, want)
		}
	}
}

func TestCallRefusesAndRecovers(t *testing.T) {
	t.Parallel()
	echoTool := New(Definition{ID: "a/b"}, echo)
	if _, err := echoTool.Call(t.Context(), Env{}, nil); AsFault(err).Code != CodeBadArguments {
		t.Errorf("no arguments: got %v", err)
	}
	_, err := echoTool.Call(t.Context(), Env{}, json.RawMessage(`{"path":"x","spend":-1}`))
	if f := AsFault(err); f.Code != CodeBadArguments {
		t.Errorf("a value the Go type refuses: got %s %v", f.Code, err)
	}
	_, err = echoTool.Call(t.Context(), Env{}, json.RawMessage(`{"path":"panic"}`))
	panicked, ok := errors.AsType[*PanicError](err)
	if !ok || panicked.Error() != "tool a/b panicked: lost" || len(panicked.Stack) == 0 {
		t.Errorf("panic: got %v", err)
	}
	_, err = echoTool.Call(t.Context(), Env{}, json.RawMessage(`{"path":"fault"}`))
	if f := AsFault(err); f.Code != CodeStaleLine || f.Details["path"] != "fault" {
		t.Errorf("fault: got %+v", f)
	}
}

func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	echoTool := New(Definition{ID: "a/b"}, echo)
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			project := fmt.Sprintf("/p%d", i)
			out, err := echoTool.Call(t.Context(), Env{Project: project}, json.RawMessage(`{"path":"x"}`))
			if err != nil || out.(map[string]any)["project"] != project {
				t.Errorf("got %v, %v", out, err)
			}
		})
	}
	calls.Wait()
}

func TestNewPanicsOnProgrammerErrors(t *testing.T) {
	t.Parallel()
	mustPanic := func(name string, f func()) {
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", name)
			}
		}()
		f()
	}
	mustPanic("type without schema", func() {
		New(Definition{ID: "a"}, func(context.Context, Env, struct{ C chan int }) (any, error) { return nil, nil }).Definition()
	})
	mustPanic("schema that is not JSON", func() {
		New(Definition{ID: "a", Schema: json.RawMessage(`{`)}, echo).Definition()
	})
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	b, a := New(Definition{ID: "b"}, echo), New(Definition{ID: "a"}, echo)
	r, err := NewRegistry(b, a)
	if err != nil {
		t.Fatal(err)
	}
	if all := r.All(); len(all) != 2 || all[0] != a || all[1] != b {
		t.Errorf("All is not sorted: %v", all)
	}
	if got, ok := r.Get("b"); !ok || got != b {
		t.Errorf("Get(b) = %v, %v", got, ok)
	}
	if _, ok := r.Get("c"); ok {
		t.Error("Get(c) found something")
	}
	if _, err := NewRegistry(a, b, a); err == nil {
		t.Error("a repeated id was accepted")
	}
	if _, err := NewRegistry(New(Definition{}, echo)); err == nil {
		t.Error("an empty id was accepted")
	}
}

func TestAsFault(t *testing.T) {
	t.Parallel()
	own := Faultf(CodeUnpriced, "no price")
	cases := []struct {
		err  error
		code Code
	}{
		{own, CodeUnpriced},
		{fmt.Errorf("start: %w", own), CodeUnpriced},
		{fmt.Errorf("ask: %w", context.Canceled), CodeCancelled},
		{fmt.Errorf("ask: %w", context.DeadlineExceeded), CodeTimeout},
		{fmt.Errorf("stop: %w", thread.ErrCancelled), CodeCancelled},
		{thread.ErrShutdown, CodeCancelled},
		{thread.ErrNotFound, CodeNotFound},
		{fmt.Errorf("%w: x", thread.ErrBadID), CodeBadID},
		{errors.New("disk full"), CodeInternal},
		{fmt.Errorf("write: %w", syscall.ENOSPC), CodeDiskFull},
		{fmt.Errorf("start: %w", &fs.PathError{Op: "mkdir", Path: "/p/.ai", Err: syscall.EACCES}), CodeUnsupported},
		{&os.LinkError{Op: "rename", Old: "/p/a", New: "/p/b", Err: syscall.EROFS}, CodeUnsupported},
		{fmt.Errorf("open: %w", &thread.BusyError{}), CodeBusy},
		{&PanicError{ToolID: "a"}, CodeInternal},
	}
	for _, c := range cases {
		f := AsFault(c.err)
		if f.Code != c.code || f.Message == "" {
			t.Errorf("AsFault(%v) = %s %q, want %s", c.err, f.Code, f.Message, c.code)
		}
		if f != own && !errors.Is(f, c.err) {
			t.Errorf("AsFault(%v) lost the cause", c.err)
		}
	}
	if AsFault(nil) != nil {
		t.Error("AsFault(nil) is not nil")
	}
}

func TestObject(t *testing.T) {
	t.Parallel()
	var in struct{ P Object }
	const big = `{ "n": 9007199254740993, "f": 1.5 }`
	if err := json.Unmarshal([]byte(`{"P":`+big+`}`), &in); err != nil {
		t.Fatal(err)
	}
	if string(in.P.Raw()) != big {
		t.Errorf("Raw() = %s", in.P.Raw())
	}
	m, err := in.P.Map()
	if err != nil || m["n"] != int64(9007199254740993) || m["f"] != 1.5 {
		t.Errorf("Map() = %v, %v", m, err)
	}
	for _, bad := range []string{`[]`, `null`, `"x"`, `1`} {
		if err := json.Unmarshal([]byte(bad), new(Object)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	var zero Object
	if out, err := json.Marshal(zero); err != nil || string(out) != "{}" {
		t.Errorf("zero marshals to %s, %v", out, err)
	}
}

// A parameter that models are not told of is taken all the same.
func TestUntoldParameters(t *testing.T) {
	t.Parallel()
	quiet := New(Definition{ID: "quiet", Untold: []string{"count"}}, func(_ context.Context, _ Env, in forgiving) (any, error) { return in.Count, nil })
	if schema := string(quiet.Definition().Schema); strings.Contains(schema, `"count"`) || !strings.Contains(schema, `"kind"`) {
		t.Errorf("schema %s", schema)
	}
	got, err := quiet.Call(t.Context(), Env{}, json.RawMessage(`{"id":"a","count":3}`))
	if err != nil || got != 3 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := quiet.Call(t.Context(), Env{}, json.RawMessage(`{"id":"a","cuont":3}`)); err == nil {
		t.Error("an undeclared parameter is taken")
	}
}
