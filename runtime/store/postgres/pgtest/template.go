package pgtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// initdb is how the files of every cluster are made. Small segments of the log make them
// half as large.
var initdb = []string{
	"-U", owner, "-A", "trust", "--no-sync", "--no-instructions", "--wal-segsize=1",
	"-E", "UTF8", "--locale=C", "--locale-provider=icu", "--icu-locale=en-US",
}

// fill makes the files of a cluster: as a copy of those that initdb once made on this
// machine, because it takes several times as long.
func (c *Cluster) fill(t testing.TB) error {
	template, err := c.template(c.bin(t, "initdb"))
	if err != nil {
		return err
	}
	switch ours, err := ownedBy(template, c.uid); {
	case err != nil:
		return err
	case ours:
		return c.run("cp", "-R", template, c.data())
	}
	if err := c.run(c.bin(t, "initdb"), append([]string{"-D", c.data()}, initdb...)...); err != nil {
		return err
	}
	return c.publish(template)
}

// template is the folder that clusters are copies of. Its name says what has made it.
func (c *Cluster) template(program string) (string, error) {
	made, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	kind := sha256.Sum256(fmt.Appendln(nil, program, made.ModTime().UnixNano(), made.Size(), c.uid, initdb))
	return filepath.Join(shortTemp(), fmt.Sprintf("rye-pg-template-%x", kind[:6])), nil
}

// publish makes the template of the files of this cluster. Another process may have been
// faster, and one template is as good as another.
func (c *Cluster) publish(template string) error {
	copied := template + "-" + filepath.Base(c.folder)
	if err := c.run("cp", "-R", c.data(), copied); err != nil {
		return err
	}
	if err := os.Rename(copied, template); err != nil {
		ours, err := ownedBy(template, c.uid)
		if err == nil && !ours {
			err = fmt.Errorf("%s cannot be made", template)
		}
		return errors.Join(err, os.RemoveAll(copied))
	}
	return nil
}

// run runs a program as the owner of the cluster's files.
func (c *Cluster) run(name string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.SysProcAttr, cmd.Dir = c.attr, "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// ownedBy reports whether there is a folder that a user has made. One of somebody else is
// not trusted, and an error.
func ownedBy(folder string, uid int) (bool, error) {
	info, err := os.Lstat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.IsDir() || userOf(info) != uid:
		return false, fmt.Errorf("%s: another user has made it", folder)
	}
	return true, nil
}
