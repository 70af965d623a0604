package vector

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/spaces/alloctest"
)

func sample(t testing.TB, dimension, records int) (Name, []Record, []byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	name := Name{Stamp: [16]byte{1, 2, 3}, After: 10, Through: 10 + int64(3*records), Dimension: dimension}
	all := make([]Record, records)
	for i := range all {
		all[i] = Record{Seq: 12 + int64(3*i), Labels: Labels{uint64(i % 2), 5, 6, 7}, Vector: randomUnit(r, dimension)}
	}
	built, err := Build(name, all)
	if err != nil {
		t.Fatal(err)
	}
	return name, all, built
}

func TestChapter(t *testing.T) {
	t.Parallel()
	name, records, built := sample(t, 13, 9)
	if len(built) != fileSize(13, 9) {
		t.Fatalf("%d bytes", len(built))
	}
	c, err := Parse(name, built)
	if err != nil || c.Len() != 9 {
		t.Fatalf("%d records, %v", c.Len(), err)
	}
	top := NewTop(100)
	c.Search(NewCode(records[4].Vector).Query(), func(l *Labels) bool { return *l == Labels{0, 5, 6, 7} }, top)
	got := top.Sorted()
	if len(got) != 5 || got[0].Seq != records[4].Seq || got[0].Bound < 1 {
		t.Errorf("%v", got)
	}
	for _, b := range got {
		i := (b.Seq - 12) / 3
		if cosine := Cosine(records[4].Vector, records[i].Vector); b.Bound < cosine || i%2 != 0 {
			t.Errorf("record %d: bound %v, cosine %v", i, b.Bound, cosine)
		}
	}
	top = NewTop(100)
	if c.Search(NewCode([]float32{1}).Query(), nil, top); len(top.Sorted()) != 0 {
		t.Error("a query of another dimension has found something")
	}
}

func TestBuildRefuses(t *testing.T) {
	t.Parallel()
	name, records, _ := sample(t, 4, 3)
	for what, change := range map[string]func(n *Name, r []Record){
		"another dimension": func(_ *Name, r []Record) { r[1].Vector = r[1].Vector[1:] },
		"the order":         func(_ *Name, r []Record) { r[0].Seq = r[1].Seq },
		"after the end":     func(n *Name, _ []Record) { n.Through = n.After + 1 },
		"before the begin":  func(_ *Name, r []Record) { r[0].Seq = 10 },
		"no dimension":      func(n *Name, _ []Record) { n.Dimension = 0 },
	} {
		n, r := name, slices.Clone(records)
		change(&n, r)
		if _, err := Build(n, r); err == nil {
			t.Errorf("%s was not seen", what)
		}
	}
	if _, err := Build(name, make([]Record, MaxRecords+1)); err == nil {
		t.Error("too many records were not seen")
	}
}

// TestAttackDamagedCodes: a file of codes is cut, changed in any byte, or is that of another chapter.
// It is refused whole, and made again from the database.
func TestAttackDamagedCodes(t *testing.T) {
	t.Parallel()
	name, _, built := sample(t, 5, 3)
	for i := range built {
		changed := slices.Clone(built)
		changed[i] ^= 1 << (i % 8)
		if _, err := Parse(name, changed); !errors.Is(err, ErrDamaged) {
			t.Fatalf("a change of byte %d: %v", i, err)
		}
		if _, err := Parse(name, built[:i]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%d bytes of it: %v", i, err)
		}
	}
	for what, other := range map[string]Name{
		"stamp": {Stamp: [16]byte{9}, After: name.After, Through: name.Through, Dimension: 5}, "begin": {Stamp: name.Stamp, After: 9, Through: name.Through, Dimension: 5},
		"end": {Stamp: name.Stamp, After: name.After, Through: 99, Dimension: 5}, "dimension": {Stamp: name.Stamp, After: name.After, Through: name.Through, Dimension: 6},
	} {
		if _, err := Parse(other, built); !errors.Is(err, ErrDamaged) {
			t.Errorf("of another %s: %v", what, err)
		}
	}
}

// TestTooManyRecords: a file of more records than a chapter has is refused, though it is whole.
func TestTooManyRecords(t *testing.T) {
	t.Parallel()
	name, _, built := sample(t, 5, 1)
	for records, wrong := range map[int]bool{MaxRecords: false, MaxRecords + 1: true} {
		file := make([]byte, fileSize(name.Dimension, records))
		copy(file, built[:headerSize])
		binary.LittleEndian.PutUint32(file[52:], uint32(records))
		binary.LittleEndian.PutUint32(file[len(file)-crcSize:], checksum(file))
		if _, err := Parse(name, file); errors.Is(err, ErrDamaged) != wrong {
			t.Errorf("%d records: %v", records, err)
		}
	}
}

// FuzzParse reads any bytes, with a checksum that is right. An accepted file can be searched.
func FuzzParse(f *testing.F) {
	name, records, built := sample(f, 5, 3)
	f.Add(built)
	f.Add(built[:headerSize+crcSize])
	f.Add([]byte(magic))
	query := NewCode(records[0].Vector).Query()
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) >= crcSize {
			file = slices.Clone(file)
			binary.LittleEndian.PutUint32(file[len(file)-crcSize:], checksum(file))
		}
		c, err := Parse(name, file)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		top := NewTop(MaxRecords)
		c.Search(query, nil, top)
		for _, b := range top.Sorted() {
			if math.IsNaN(b.Bound) {
				t.Fatal("a bound is no number")
			}
		}
		if len(top.Sorted()) != c.Len() || c.Len() > MaxRecords {
			t.Fatalf("%d of %d records", len(top.Sorted()), c.Len())
		}
	})
}

func TestDir(t *testing.T) {
	t.Parallel()
	d := Dir{Path: filepath.Join(t.TempDir(), "memory.codes")}
	name, _, built := sample(t, 5, 3)
	if _, _, err := d.Load(name, nil); !errors.Is(err, fs.ErrNotExist) || d.Has(name.Stamp) {
		t.Fatalf("nothing is there: %v", err)
	}
	if err := errors.Join(d.Save(name, built), d.Save(name, built)); err != nil {
		t.Fatal(err)
	}
	c, buf, err := d.Load(name, nil)
	if err != nil || c.Len() != 3 || !d.Has(name.Stamp) {
		t.Fatalf("%d records, %v", c.Len(), err)
	}
	if _, again, err := d.Load(name, buf); err != nil || &again[0] != &buf[0] {
		t.Errorf("the room is not used again, %v", err)
	}
	entries, err := os.ReadDir(d.Path)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	for _, path := range []string{d.Path, filepath.Join(d.Path, entries[0].Name())} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others can read %s: %v, %v", path, info.Mode(), err)
		}
	}
}

// Nothing but a file of codes is opened: a folder, a link, one that is too large.
func TestDirOfOthers(t *testing.T) { // allocations of others would be counted
	name, _, built := sample(t, 5, 3)
	for what, put := range map[string]func(path string) error{
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"a link": func(path string) error {
			return errors.Join(os.WriteFile(path+".other", built, 0o600), os.Symlink(path+".other", path))
		},
		"a large file": func(path string) error {
			return errors.Join(os.WriteFile(path, built, 0o600), os.Truncate(path, 1<<40))
		},
	} {
		d := Dir{Path: t.TempDir()}
		if err := put(d.file(name.Stamp)); err != nil {
			t.Fatal(err)
		}
		used := alloctest.Bytes(func() {
			if _, _, err := d.Load(name, nil); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", what, err)
			}
		})
		if used > 1<<20 {
			t.Errorf("%s takes %d bytes", what, used)
		}
	}
	link := Dir{Path: filepath.Join(t.TempDir(), "link")}
	if err := os.Symlink(t.TempDir(), link.Path); err != nil {
		t.Fatal(err)
	}
	if err := link.Save(name, built); err == nil {
		t.Error("a file was written through a link")
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	d := Dir{Path: t.TempDir()}
	name, _, built := sample(t, 5, 3)
	other := name
	other.Stamp[0]++
	if err := errors.Join(d.Save(name, built), d.Save(other, built)); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for file, at := range map[string]time.Time{"00.1.tmp": now, "00.2.tmp": now.Add(-2 * time.Hour), "notes.txt": now, "zz.codes": now} {
		path := filepath.Join(d.Path, file)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := d.List()
	if err != nil {
		t.Fatal(err)
	}
	d.Sweep(listed, map[[16]byte]bool{name.Stamp: true}, now)
	var left []string
	entries, err := os.ReadDir(d.Path)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"00.1.tmp", filepath.Base(d.file(name.Stamp)), "notes.txt", "zz.codes"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left %v, want %v, %v", left, want, err)
	}
}
