// Package workspace is the side of the files in a state container: it fills the folders of a
// session's workspace from a bucket (Fill) and makes the bucket be like them (Save).
//
// The agent writes to the workspace what it likes, links included, and the containers hold
// credentials that it does not have. So no path leads out of the folder that is copied.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ambient-code/agentic-operator/test/statesync/internal/bucket"
)

// The runner's container may run as another user of the same group.
const (
	folderMode = 0o775
	fileMode   = 0o664
)

// Prepare makes the folders of a workspace.
func Prepare(root string, folders []string) error {
	for _, folder := range folders {
		if err := os.MkdirAll(filepath.Join(root, folder), folderMode); err != nil {
			return fmt.Errorf("making the folder %s of the workspace: %w", folder, err)
		}
	}
	return nil
}

// Fill writes what the bucket has under a prefix into a folder, and says how many files that were.
func Fill(ctx context.Context, store *bucket.Bucket, folder, prefix string) (files int, err error) {
	objects, err := store.List(ctx, prefix)
	if err != nil {
		return 0, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return 0, fmt.Errorf("opening the folder: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, object := range objects {
		name := strings.TrimPrefix(object.Key, prefix)
		if name == "" || strings.HasSuffix(name, "/") {
			continue // a folder
		}
		if err := fetch(ctx, store, root, object.Key, name); err != nil {
			return files, err
		}
		files++
	}
	return files, nil
}

func fetch(ctx context.Context, store *bucket.Bucket, root *os.Root, key, name string) (err error) {
	if err := root.MkdirAll(path.Dir(name), folderMode); err != nil {
		return fmt.Errorf("making the folder of %s: %w", name, err)
	}
	object, err := store.Get(ctx, key)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return fmt.Errorf("writing the file %s: %w", name, err)
	}
	_, err = io.Copy(file, object)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing the file %s: %w", name, err)
	}
	return nil
}
