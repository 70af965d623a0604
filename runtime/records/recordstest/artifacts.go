package recordstest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
)

// artifacts: they are found by a part of their hash, listed oldest first, shared, and
// refused when their content is another.
func artifacts(t *testing.T, s Subject) {
	of, successor := prepared(t, s, one), prepared(t, s, other)
	texts := [][]byte{[]byte("first"), []byte("second"), {0xff, 0xfe, 0}}
	var names []string
	for _, content := range texts {
		hash := hashOf(content)
		where, err := of.Artifacts().Write(hash, content)
		again, err2 := of.Artifacts().Write(hash, content)
		if err != nil || err2 != nil || where == "" || where != again {
			t.Fatalf("kept at %q and %q, %v, %v", where, again, err, err2)
		}
		if got, err := of.Artifacts().Load(hash[:16]); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%q, %v", got, err)
		}
		names = append(names, hash)
	}
	must(t, errors.Join(of.Artifacts().ShareWith(other), of.Artifacts().ShareWith(other)))
	for _, of := range []records.Thread{of, successor} {
		list, err := of.Artifacts().List()
		must(t, err)
		for _, name := range names {
			if !slices.ContainsFunc(list, func(a records.Artifact) bool { return strings.HasPrefix(a.Name, name+".") && a.Size > 0 }) || len(list) != len(names) {
				t.Errorf("%s is not among %v of %s", name, list, of.ID())
			}
		}
		seen := 0
		must(t, of.Artifacts().Each(func(name string, open func() (records.Reader, error)) error {
			r, err := open()
			must(t, err)
			content, err := io.ReadAll(io.NewSectionReader(r, 0, math.MaxInt64))
			if err != nil || !strings.HasPrefix(name, hashOf(content)) {
				t.Errorf("%s is %q, %v", name, content, err)
			}
			seen++
			return r.Close()
		}))
		if seen != len(names) {
			t.Errorf("%d are visited", seen)
		}
	}
	wrong := strings.Repeat("ab", 32)
	_, err := of.Artifacts().Write(wrong, []byte("not of that hash"))
	must(t, err)
	if got, err := of.Artifacts().Load(wrong); err == nil {
		t.Errorf("%q is taken for what was kept", got)
	}
	list, err := of.Artifacts().List()
	must(t, err)
	must(t, of.Artifacts().Remove(list[0].Name))
	if left, err := of.Artifacts().List(); err != nil || len(left) != len(list)-1 || of.Artifacts().Remove("../thread.json") == nil {
		t.Errorf("left are %v, %v", left, err)
	}
	enough := errors.New("enough")
	if err := of.Artifacts().Each(func(string, func() (records.Reader, error)) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("the visit goes on: %v", err)
	}
}

// sizes: large records are whole, and what is too large to be read is not written.
func sizes(t *testing.T, s Subject) {
	of := prepared(t, s, one)
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	hash := hashOf(content)
	_, err := of.Artifacts().Write(hash, content)
	must(t, err)
	if got, err := of.Artifacts().Load(hash); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d of %d bytes of an artifact, %v", len(got), len(content), err)
	}
	must(t, of.Meta().Write(metaOf(one, 1)))
	huge := metaOf(one, 2)
	huge.Inputs = map[string]any{"text": strings.Repeat("x", 17<<20)}
	if err := of.Meta().Write(huge); err == nil {
		t.Error("17 MiB of metadata are written")
	}
	if got, err := of.Meta().Read(); err != nil || got.Cost.Turns != 1 {
		t.Errorf("afterwards it says %+v, %v", got.Cost, err)
	}
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
