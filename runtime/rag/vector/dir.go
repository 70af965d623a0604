package vector

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Dir is a folder of files of codes. They are a cache: a process that finds one missing or damaged
// makes it again. Each is written under another name and renamed, by any number of processes
// at once, so that a name is of a whole file or of none; the checksum shows
// what a crash or a loss of power has left.
type Dir struct {
	Path string
	// Step is told what is about to be done. Nil: nobody is.
	Step func(name string)
}

const (
	ending     = ".codes"
	tempEnding = ".tmp"
	// abandoned is how old a file is that nobody writes any more.
	abandoned = time.Hour
)

func (d Dir) step(name string) {
	if d.Step != nil {
		d.Step(name)
	}
}

func (d Dir) file(stamp [16]byte) string {
	return filepath.Join(d.Path, hex.EncodeToString(stamp[:])+ending)
}

// Load reads a chapter into buf, which grows as needed and is returned for the next one.
// The chapter refers to it.
func (d Dir) Load(name Name, buf []byte) (c Chapter, _ []byte, err error) {
	path := d.file(name.Stamp)
	info, err := os.Lstat(path)
	if err != nil {
		return c, buf, err
	}
	most := fileSize(name.Dimension, MaxRecords)
	if !info.Mode().IsRegular() || info.Size() > int64(most) {
		return c, buf, fmt.Errorf("%w: %s is no file of codes", ErrDamaged, path)
	}
	file, err := os.Open(path)
	if err != nil {
		return c, buf, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	if cap(buf) < most {
		buf = make([]byte, most)
	}
	buf = buf[:info.Size()]
	if _, err := io.ReadFull(file, buf); err != nil {
		return c, buf, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	c, err = Parse(name, buf)
	return c, buf, err
}

// Has reports whether there is a file of a chapter; its content is not looked at.
func (d Dir) Has(stamp [16]byte) bool {
	info, err := os.Lstat(d.file(stamp))
	return err == nil && info.Mode().IsRegular()
}

// Save writes the file of a chapter, which Build has made. It is not synced to disk.
func (d Dir) Save(name Name, built []byte) (err error) {
	d.step("folder")
	if err := d.make(); err != nil {
		return err
	}
	d.step("temporary file")
	f, err := os.CreateTemp(d.Path, hex.EncodeToString(name.Stamp[:])+".*"+tempEnding)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	d.step("first half")
	if err = d.fill(f, built); err != nil {
		return errors.Join(err, f.Close())
	}
	d.step("close")
	if err = f.Close(); err != nil {
		return err
	}
	d.step("rename")
	err = os.Rename(f.Name(), d.file(name.Stamp))
	d.step("renamed")
	return err
}

// fill writes in two parts, between which a process may die.
func (d Dir) fill(f *os.File, built []byte) error {
	half := len(built) / 2
	if _, err := f.Write(built[:half]); err != nil {
		return err
	}
	d.step("second half")
	_, err := f.Write(built[half:])
	return err
}

// make makes the folder, for its owner only.
func (d Dir) make() error {
	info, err := os.Lstat(d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.Mkdir(d.Path, 0o700)
		if errors.Is(err, fs.ErrExist) { // another process was faster
			return nil
		}
		return err
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", d.Path)
	}
	return nil
}

// List returns the files that are there now, for Sweep.
func (d Dir) List() ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(d.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// Sweep removes, of the files that were listed, those of chapters that are no more, and what
// processes that died have left. Those that cannot be removed are left.
func (d Dir) Sweep(listed []fs.DirEntry, live map[[16]byte]bool, now time.Time) {
	for _, entry := range listed {
		if entry.Type().IsRegular() && d.isLeft(entry, live, now) {
			d.step("remove")
			_ = os.Remove(filepath.Join(d.Path, entry.Name()))
		}
	}
}

func (d Dir) isLeft(entry fs.DirEntry, live map[[16]byte]bool, now time.Time) bool {
	if strings.HasSuffix(entry.Name(), tempEnding) {
		info, err := entry.Info()
		return err == nil && now.Sub(info.ModTime()) > abandoned
	}
	name, ok := strings.CutSuffix(entry.Name(), ending)
	var stamp [16]byte
	if n, err := hex.Decode(stamp[:], []byte(name[:min(len(name), 32)])); !ok || err != nil || n != 16 || len(name) != 32 {
		return false // not ours
	}
	return !live[stamp]
}
