package workspace

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ambient-code/agentic-operator/test/statesync/internal/bucket"
	"github.com/ambient-code/agentic-operator/test/statesync/internal/settings"
)

// excluded folders are not copied, wherever they are: they can be made again, or are git's.
var excluded = []string{"repos", "node_modules", ".venv", "__pycache__", ".cache", "target", "dist", "build", ".git", "debug"}

// Save makes the bucket be like the workspace's folders, and notes in metadata.json that it did.
func Save(ctx context.Context, log *slog.Logger, store *bucket.Bucket, with settings.Settings) error {
	var failed []error
	saved := 0
	for _, name := range with.Folders() {
		folder := filepath.Join(with.Workspace, name)
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := saveFolder(ctx, log, store, folder, with.Prefix()+name+"/", with.LargestFile); err != nil {
			failed = append(failed, fmt.Errorf("copying %s: %w", name, err))
			continue
		}
		saved++
	}
	note, err := json.Marshal(map[string]any{
		"lastSync": time.Now().UTC().Format(time.RFC3339), "session": with.Session, "namespace": with.Namespace, "pathsSynced": saved,
	})
	if err == nil {
		err = store.Put(ctx, with.Prefix()+"metadata.json", strings.NewReader(string(note)), int64(len(note)))
	}
	return errors.Join(append(failed, err)...)
}

func saveFolder(ctx context.Context, log *slog.Logger, store *bucket.Bucket, folder, prefix string, largest int64) (err error) {
	objects, err := store.List(ctx, prefix)
	if err != nil {
		return err
	}
	stale := map[string]bucket.Object{}
	for _, object := range objects {
		if name := strings.TrimPrefix(object.Key, prefix); !isExcluded(name) {
			stale[name] = object
		}
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("opening the folder: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case isExcluded(name) && entry.IsDir():
			return fs.SkipDir
		case isExcluded(name) || entry.IsDir():
			return nil
		}
		known := stale[name]
		delete(stale, name)
		return saveFile(ctx, log, store, root, name, prefix+name, known, largest)
	})
	if err != nil {
		return err
	}
	for _, object := range stale {
		if err := store.Remove(ctx, object.Key); err != nil {
			return err
		}
	}
	return nil
}

// saveFile copies a file that is not the same in the bucket already. A link that leads out of the
// folder, a file that vanishes meanwhile and one that is too large are left out.
func saveFile(ctx context.Context, log *slog.Logger, store *bucket.Bucket, root *os.Root, name, key string, known bucket.Object, largest int64) (err error) {
	info, err := root.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > largest {
		log.Warn("a file is left out", "name", name, "error", err)
		return nil
	}
	file, err := root.Open(name)
	if err != nil {
		log.Warn("a file is left out", "name", name, "error", err)
		return nil
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum := md5.New() // what S3 calls an ETag; nothing is secured by it
	size, err := io.Copy(sum, file)
	if err != nil {
		return fmt.Errorf("reading the file %s: %w", name, err)
	}
	if known.Size == size && strings.Trim(known.MD5, `"`) == hex.EncodeToString(sum.Sum(nil)) {
		return nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading the file %s: %w", name, err)
	}
	return store.Put(ctx, key, io.LimitReader(file, size), size)
}

func isExcluded(name string) bool {
	return strings.HasSuffix(name, ".pyc") || slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return slices.Contains(excluded, part) })
}
