package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// attempts is how often a failed request is made.
const attempts = 5

// bucket is a Store in a bucket of an S3-compatible service.
type bucket struct {
	client *minio.Client
	name   string
	prefix string // ends with a slash, or is empty
}

func openBucket(u *url.URL, c Credentials) (*bucket, error) {
	q := u.Query()
	for name := range q {
		if name != "endpoint" && name != "region" {
			return nil, fmt.Errorf("object store: %q is not a setting of an s3:// address: there are endpoint and region", name)
		}
	}
	endpoint := q.Get("endpoint")
	if endpoint == "" {
		endpoint = "https://s3.amazonaws.com"
	}
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || strings.Trim(at.Path, "/") != "" {
		return nil, fmt.Errorf("object store: the endpoint %q is not an address like https://host:port", endpoint)
	}
	if u.Host == "" || u.User != nil {
		return nil, errors.New("object store: an s3:// address names a bucket, and no credentials: use access-key and secret-key")
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		if err := check(prefix); err != nil {
			return nil, fmt.Errorf("object store: %w", err)
		}
		prefix += "/"
	}
	client, err := minio.New(at.Host, &minio.Options{
		Creds: c.chain(), Secure: at.Scheme == "https", Region: q.Get("region"), MaxRetries: attempts,
	})
	if err != nil {
		return nil, fmt.Errorf("object store: %w", err)
	}
	return &bucket{client: client, name: u.Host, prefix: prefix}, nil
}

func (c Credentials) chain() *credentials.Credentials {
	if c.AccessKey != "" {
		return credentials.NewStaticV4(c.AccessKey, c.SecretKey, "")
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
	})
}

func (b *bucket) Put(ctx context.Context, key string, from io.Reader, size int64) error {
	if err := check(key); err != nil {
		return err
	}
	// One request, so that an interrupted upload leaves no part behind. The oldest checksum, because some
	// services know no other.
	_, err := b.client.PutObject(ctx, b.name, b.prefix+key, from, size, minio.PutObjectOptions{
		ContentType: "application/octet-stream", DisableMultipart: true, SendContentMd5: true,
	})
	return refine(key, err)
}

func (b *bucket) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := check(key); err != nil {
		return nil, err
	}
	o, err := b.client.GetObject(ctx, b.name, b.prefix+key, minio.GetObjectOptions{})
	if err != nil {
		return nil, refine(key, err)
	}
	if _, err := o.Stat(); err != nil { // the request is only made now
		return nil, errors.Join(refine(key, err), o.Close())
	}
	return o, nil
}

func (b *bucket) List(ctx context.Context, prefix string) ([]Object, error) {
	if err := check(prefix + "x"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx) // ends the listing if the loop returns early
	defer cancel()
	var all []Object
	for o := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, refine(prefix, o.Err)
		}
		all = append(all, Object{Key: strings.TrimPrefix(o.Key, b.prefix), Size: o.Size})
	}
	slices.SortFunc(all, byKey)
	return all, context.Cause(ctx)
}

func (b *bucket) Delete(ctx context.Context, key string) error {
	if err := check(key); err != nil {
		return err
	}
	err := refine(key, b.client.RemoveObject(ctx, b.name, b.prefix+key, minio.RemoveObjectOptions{}))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// refine turns an error of the service into one of this package.
func refine(key string, err error) error {
	if err == nil {
		return nil
	}
	if r := minio.ToErrorResponse(err); r.Code == minio.NoSuchKey || r.Code == "" && r.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%w: %s", ErrNotFound, key)
	}
	return fmt.Errorf("object %s: %w", key, err)
}
