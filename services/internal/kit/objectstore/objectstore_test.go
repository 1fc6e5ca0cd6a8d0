package objectstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
)

// stores are the backends of the suite. With TEST_S3_URL set, an address as of
// Open whose bucket exists, so is that one.
func stores(t *testing.T) map[string]Store {
	t.Helper()
	local, err := Open("file://"+t.TempDir()+"/objects", Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	back := s3mem.New()
	if err := back.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(back).Server())
	t.Cleanup(server.Close)
	remote, err := Open("s3://bucket/some/prefix?region=us-east-1&endpoint="+url.QueryEscape(server.URL), Credentials{"key", "secret"})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]Store{"a folder": local, "a bucket": remote}
	if address := os.Getenv("TEST_S3_URL"); address != "" {
		if all["a service"], err = Open(address, Credentials{}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func get(t *testing.T, s Store, key string) string {
	t.Helper()
	r, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func put(t *testing.T, s Store, key, content string) {
	t.Helper()
	if err := s.Put(t.Context(), key, strings.NewReader(content), int64(len(content))); err != nil {
		t.Fatal(err)
	}
}

func TestEveryStoreKeepsObjects(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			large := string(bytes.Repeat([]byte("0123456789abcdef"), 17<<16)) // more than one part of an upload
			objects := map[string]string{"a/b/one": "1", "a/b/two%20=": "2", "a/bc": large, "a/b/c/d": "4", "b": "5"}
			for key, content := range objects {
				put(t, s, key, content)
			}
			objects["a/b/one"] = "one"
			put(t, s, "a/b/one", "one")
			if got := get(t, s, "a/b/one"); got != "one" {
				t.Errorf("what was written over is %q", got)
			}
			if got := get(t, s, "a/b/two%20="); got != "2" {
				t.Errorf("a small object is %q", got)
			}
			if got := get(t, s, "a/bc"); got != large {
				t.Errorf("a large object has %d bytes, not the %d that were written", len(got), len(large))
			}
			want := map[string][]string{
				"a/b": {"a/b/c/d", "a/b/one", "a/b/two%20=", "a/bc"}, "a/b/": {"a/b/c/d", "a/b/one", "a/b/two%20="},
				"a/b/t": {"a/b/two%20="}, "none/": nil, "a/none": nil,
			}
			for prefix, keys := range want {
				all, err := s.List(t.Context(), prefix)
				if err != nil {
					t.Errorf("%s: %v", prefix, err)
				}
				var got []string
				for _, o := range all {
					got = append(got, o.Key)
					if want := int64(len(objects[o.Key])); o.Size != want {
						t.Errorf("%s: %d bytes are listed, %d are there", o.Key, o.Size, want)
					}
				}
				if diff := cmp.Diff(keys, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", prefix, diff)
				}
			}
			for range 2 {
				if err := s.Delete(t.Context(), "a/b/c/d"); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
			if _, err := s.Get(t.Context(), "a/b/c/d"); !errors.Is(err, ErrNotFound) {
				t.Errorf("what was deleted: %v", err)
			}
		})
	}
}

func TestAnObjectIsThereWholeOrNotAtAll(t *testing.T) {
	broken := errors.New("broken")
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			for what, from := range map[string]io.Reader{
				"short":  strings.NewReader("12"),
				"broken": io.MultiReader(strings.NewReader("12"), failing{broken}),
			} {
				if err := s.Put(t.Context(), "torn/"+what, from, 5); err == nil {
					t.Errorf("%s: no error", what)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Put(ctx, "torn/late", strings.NewReader("1"), 1); !errors.Is(err, context.Canceled) {
				t.Errorf("with an ended context: %v", err)
			}
			if got, err := s.List(t.Context(), "torn/"); err != nil || len(got) > 0 {
				t.Errorf("there is %v, %v", got, err)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestAKeyNamesNothingElse(t *testing.T) {
	for name, s := range stores(t) {
		for _, key := range []string{"", "..", "a/../b", "/a", "a/", "a//b", "a/.hidden", "a\x00b", "ä", strings.Repeat("a", 300)} {
			_, getErr := s.Get(t.Context(), key)
			for what, err := range map[string]error{
				"put": s.Put(t.Context(), key, strings.NewReader(""), 0), "get": getErr, "delete": s.Delete(t.Context(), key),
			} {
				if !errors.Is(err, ErrKey) {
					t.Errorf("%s, %s %q: %v", name, what, key, err)
				}
			}
		}
		if _, err := s.List(t.Context(), "../"); !errors.Is(err, ErrKey) {
			t.Errorf("%s: list: %v", name, err)
		}
	}
}

func TestAnAddressIsUnderstoodOrRefused(t *testing.T) {
	for address, want := range map[string]string{
		"":                                "must begin with",
		"/folder":                         "must begin with",
		"file://host/folder":              "absolute path",
		"s3://":                           "names a bucket",
		"s3://key:secret@bucket":          "no credentials",
		"s3://bucket?endpoint=host:9000":  "not an address like",
		"s3://bucket?secret=x":            "not a setting",
		"s3://bucket/../x":                "not valid",
		"s3://bucket/p?endpoint=http://h": "",
	} {
		_, err := Open(address, Credentials{"k", "s"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestACodeOfTheServiceIsNotHidden(t *testing.T) {
	if err := refine("k", minio.ErrorResponse{Code: "AccessDenied", StatusCode: 403}); errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "object k") {
		t.Errorf("got %v", err)
	}
}
