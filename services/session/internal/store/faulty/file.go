package faulty

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods of files.
const (
	CreateFile  Method = "CreateFile"
	GetFile     Method = "GetFile"
	ListFiles   Method = "ListFiles"
	FileParts   Method = "FileParts"
	AppendPart  Method = "AppendPart"
	FinishFile  Method = "FinishFile"
	DeleteFile  Method = "DeleteFile"
	ExpireFiles Method = "ExpireFiles"
)

// CreateFile implements store.Files.
func (s files) CreateFile(ctx context.Context, n store.NewFile) (store.Answer, error) {
	return do(ctx, s.injector, CreateFile, func() (store.Answer, error) { return s.inner.CreateFile(ctx, n) })
}

// GetFile implements store.Files.
func (s files) GetFile(ctx context.Context, tenant, id string) (*store.FileRow, error) {
	return do(ctx, s.injector, GetFile, func() (*store.FileRow, error) { return s.inner.GetFile(ctx, tenant, id) })
}

// ListFiles implements store.Files.
func (s files) ListFiles(ctx context.Context, p store.FilePage) ([]*sessionv1.File, error) {
	return do(ctx, s.injector, ListFiles, func() ([]*sessionv1.File, error) { return s.inner.ListFiles(ctx, p) })
}

// FileParts implements store.Files.
func (s files) FileParts(ctx context.Context, tenant, id string, offset int64) ([]store.FilePart, error) {
	return do(ctx, s.injector, FileParts, func() ([]store.FilePart, error) { return s.inner.FileParts(ctx, tenant, id, offset) })
}

// AppendPart implements store.Files.
func (s files) AppendPart(ctx context.Context, p store.AppendPart) error {
	return just(ctx, s.injector, AppendPart, func() error { return s.inner.AppendPart(ctx, p) })
}

// FinishFile implements store.Files.
func (s files) FinishFile(ctx context.Context, tenant, id string, size int64, sum []byte) error {
	return just(ctx, s.injector, FinishFile, func() error { return s.inner.FinishFile(ctx, tenant, id, size, sum) })
}

// DeleteFile implements store.Files.
func (s files) DeleteFile(ctx context.Context, tenant, id string, r store.Request) (store.Answer, error) {
	return do(ctx, s.injector, DeleteFile, func() (store.Answer, error) { return s.inner.DeleteFile(ctx, tenant, id, r) })
}

// ExpireFiles implements store.Files.
func (s files) ExpireFiles(ctx context.Context, limit int) (int, error) {
	return do(ctx, s.injector, ExpireFiles, func() (int, error) { return s.inner.ExpireFiles(ctx, limit) })
}
