// Package archive unpacks the bundle that "operator-sdk scorecard" hands to its pods as an archive in
// a ConfigMap.
package archive

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// limit is the most that one file of a bundle may hold. OLM takes no bundle of more than 1 MiB.
const limit = 16 << 20

// Tar does what the one call of tar does that scorecard makes: xvzf ARCHIVE -C FOLDER.
func Tar(args []string) error {
	if len(args) != 4 || args[0] != "xvzf" || args[2] != "-C" {
		return fmt.Errorf("tar %q: only xvzf ARCHIVE -C FOLDER is known here", args)
	}
	return Unpack(args[1], args[3])
}

// Unpack unpacks a gzipped archive into a folder, and nothing outside it.
func Unpack(from, to string) (err error) {
	file, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("opening the archive: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("reading %s: %w", from, err)
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return fmt.Errorf("opening the folder to unpack into: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for entries := tar.NewReader(plain); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", from, err)
		}
		if err := place(root, entry, entries); err != nil {
			return fmt.Errorf("unpacking %s: %w", entry.Name, err)
		}
	}
}

// place writes one entry. Links and devices are no part of a bundle.
func place(root *os.Root, entry *tar.Header, content io.Reader) (err error) {
	switch entry.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(entry.Name, 0o755)
	case tar.TypeReg:
	default:
		return errors.New("it is neither a file nor a folder")
	}
	if entry.Size > limit {
		return fmt.Errorf("it has %d bytes, more than the %d that a file of a bundle may have", entry.Size, limit)
	}
	if err := root.MkdirAll(path.Dir(entry.Name), 0o755); err != nil {
		return err
	}
	file, err := root.OpenFile(entry.Name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.Copy(file, io.LimitReader(content, limit))
	return err
}
