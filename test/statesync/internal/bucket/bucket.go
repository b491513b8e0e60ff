// Package bucket is the S3 side of a state container: the objects of one bucket.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/ambient-code/agentic-operator/test/statesync/internal/settings"
)

// attempts is how often a request is made before it has failed.
const attempts = 5

// Bucket is a bucket of an S3 server.
type Bucket struct {
	client *minio.Client
	name   string
	server string
}

// Object is what a listing tells of an object.
type Object struct {
	Key  string
	Size int64
	// MD5 is the hexadecimal checksum, where the server's ETag is one.
	MD5 string
}

// Open makes no request yet.
func Open(with settings.Settings) (*Bucket, error) {
	client, err := minio.New(with.Endpoint.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(with.AccessKey, with.SecretKey, ""),
		Secure: with.Endpoint.Scheme == "https", BucketLookup: minio.BucketLookupPath, MaxRetries: attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("reading S3_ENDPOINT: %w", err)
	}
	return &Bucket{client, with.Bucket, with.Endpoint.Redacted()}, nil
}

// Check fails where the bucket cannot be used, and says what to look at. A server that does not
// answer is asked again until the context ends.
func (b *Bucket) Check(ctx context.Context) error {
	for {
		found, err := b.client.BucketExists(ctx, b.name)
		switch {
		case err == nil && found:
			return nil
		case err == nil:
			return fmt.Errorf("the S3 server %s has no bucket %q: make it, or name another one in S3_BUCKET", b.server, b.name)
		case minio.ToErrorResponse(err).StatusCode != 0:
			return fmt.Errorf("the S3 server %s refuses us bucket %q: check the credentials: %w", b.server, b.name, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the S3 server %s does not answer: check S3_ENDPOINT: %w", b.server, err)
		case <-time.After(time.Second):
		}
	}
}

// Make makes the bucket where it is not there.
func (b *Bucket) Make(ctx context.Context) error {
	found, err := b.client.BucketExists(ctx, b.name)
	if err == nil && !found {
		err = b.client.MakeBucket(ctx, b.name, minio.MakeBucketOptions{})
	}
	if err != nil {
		return fmt.Errorf("making bucket %q: %w", b.name, err)
	}
	return nil
}

// List lists the objects whose keys begin with a prefix.
func (b *Bucket) List(ctx context.Context, prefix string) ([]Object, error) {
	var objects []Object
	for object := range b.client.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if object.Err != nil {
			return nil, fmt.Errorf("listing %s: %w", prefix, object.Err)
		}
		objects = append(objects, Object{Key: object.Key, Size: object.Size, MD5: object.ETag})
	}
	return objects, nil
}

// Get is the content of an object, to be closed by the caller.
func (b *Bucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	object, err := b.client.GetObject(ctx, b.name, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	return object, nil
}

// Read is the whole content of an object.
func (b *Bucket) Read(ctx context.Context, key string) (content []byte, err error) {
	object, err := b.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, object.Close()) }()
	if content, err = io.ReadAll(object); err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	return content, nil
}

// Put writes an object in one request, so that its ETag is its checksum.
func (b *Bucket) Put(ctx context.Context, key string, content io.Reader, size int64) error {
	options := minio.PutObjectOptions{SendContentMd5: true, DisableMultipart: true}
	if _, err := b.client.PutObject(ctx, b.name, key, content, size, options); err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	return nil
}

// Remove removes an object.
func (b *Bucket) Remove(ctx context.Context, key string) error {
	if err := b.client.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{}); err != nil {
		return fmt.Errorf("removing %s: %w", key, err)
	}
	return nil
}
