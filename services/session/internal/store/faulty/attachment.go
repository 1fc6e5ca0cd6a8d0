package faulty

import (
	"context"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Methods of attached runtimes.
const (
	PutAttachments  Method = "PutAttachments"
	ListAttachments Method = "ListAttachments"
)

// PutAttachments implements store.Attachments.
func (s attachments) PutAttachments(ctx context.Context, replica string, all []store.Attachment, ttl time.Duration) error {
	return just(ctx, s.injector, PutAttachments, func() error { return s.inner.PutAttachments(ctx, replica, all, ttl) })
}

// ListAttachments implements store.Attachments.
func (s attachments) ListAttachments(ctx context.Context, tenant, runtime string) ([]store.Attachment, error) {
	return do(ctx, s.injector, ListAttachments, func() ([]store.Attachment, error) { return s.inner.ListAttachments(ctx, tenant, runtime) })
}
