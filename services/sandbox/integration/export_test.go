package integration

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/objectstore"
	"github.com/fairlead/fairlead/services/sandbox"
)

// slowStore is an object store whose writes wait until goOn is closed.
type slowStore struct {
	objectstore.Store
	url     string
	writing chan struct{} // closed when the first write has begun
	goOn    chan struct{}
}

func newSlowStore(t *testing.T) *slowStore {
	t.Helper()
	back := s3mem.New()
	if err := back.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	s := &slowStore{writing: make(chan struct{}), goOn: make(chan struct{})}
	inner, begun := gofakes3.New(back).Server(), sync.OnceFunc(func() { close(s.writing) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			body, err := io.ReadAll(r.Body)
			begun()
			select {
			case <-s.goOn:
			case <-r.Context().Done():
				panic(http.ErrAbortHandler)
			case <-time.After(30 * time.Second): // the test has failed by then
			}
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = "s3://bucket?region=us-east-1&endpoint=" + url.QueryEscape(server.URL)
	var err error
	if s.Store, err = objectstore.Open(s.url, objectstore.Credentials{AccessKey: "k", SecretKey: "s"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// exporting is a workspace whose export has begun and waits for the object store.
func exporting(t *testing.T) (c *client, s *slowStore, exported <-chan error) {
	t.Helper()
	s = newSlowStore(t)
	c = open(t, sandbox.LevelBasic, func(cfg *sandbox.Config) {
		cfg.ObjectStore.URL, cfg.ObjectStore.AccessKey, cfg.ObjectStore.SecretKey = s.url, "k", "s"
	})
	c.bash(t, "head -c 100000 /dev/urandom > f")
	c.snapshot(t, c.call())
	done := make(chan error, 1)
	go func() {
		_, err := c.snapshots.ExportSnapshots(t.Context(), &sandboxv1.ExportSnapshotsRequest{Call: c.named("export")})
		done <- err
	}()
	<-s.writing
	return c, s, done
}

func TestAnExportThatTakesLongHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	c, s, exported := exporting(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := c.snapshots.DeleteSnapshots(ctx, &sandboxv1.DeleteSnapshotsRequest{Call: c.call(), Snapshots: c.list(ctx, t)}); err != nil {
		t.Errorf("snapshots cannot be deleted meanwhile: %v", err)
	}
	if _, err := c.files.DeleteFile(ctx, &sandboxv1.DeleteFileRequest{Call: c.call(), Path: "f"}); err != nil {
		t.Errorf("files cannot be changed meanwhile: %v", err)
	}
	close(s.goOn)
	if err := <-exported; err != nil {
		t.Errorf("the export: %v", err)
	}
	other := start(t, func() sandbox.Config {
		cfg := configuration(t, sandbox.LevelBasic)
		cfg.ObjectStore.URL, cfg.ObjectStore.AccessKey, cfg.ObjectStore.SecretKey = s.url, "k", "s"
		return cfg
	}())
	if _, err := other.snapshots.ImportSnapshots(t.Context(), &sandboxv1.ImportSnapshotsRequest{Call: in(2, other.call())}); err != nil {
		t.Fatal(err)
	}
	if got := other.bash(t, "wc -c < f"); got.out != "100000\n" {
		t.Errorf("what was copied has %q", got.out)
	}
}

func TestADeletedWorkspaceIsNotExportedAnyMore(t *testing.T) {
	t.Parallel()
	c, s, exported := exporting(t)
	deleted := make(chan error, 1)
	go func() {
		_, err := c.workspaces.DeleteWorkspace(t.Context(), &sandboxv1.DeleteWorkspaceRequest{Session: c.session})
		deleted <- err
	}()
	select {
	case err := <-exported: // the deletion has ended it
		wantReason(t, err, "WORKSPACE_NOT_FOUND")
		close(s.goOn)
		if err := <-deleted; err != nil {
			t.Error(err)
		}
	case err := <-deleted:
		t.Errorf("the deletion did not wait for the export: %v", err)
		close(s.goOn)
		_ = <-exported //nolint:staticcheck // only the end matters
	}
	if left, err := s.List(t.Context(), "default/"); err != nil || len(left) > 0 {
		t.Errorf("the object store has %v, %v", left, err)
	}
}
