package store

import (
	"context"
	"time"
)

// Attachment says which processes of a runtime are attached to a replica.
type Attachment struct {
	Tenant, Runtime, Replica string
	// Processes take Places turns at once, and have Turns.
	Processes, Places, Turns int
}

// Attachments are the processes that are attached to replicas as runtimes.
type Attachments interface {
	// PutAttachments puts all of a replica in the place of those that it had. They count for the TTL.
	PutAttachments(ctx context.Context, replica string, all []Attachment, ttl time.Duration) error
	// ListAttachments lists those of a tenant, of one runtime or, if that is empty, of all, ordered by runtime
	// and replica.
	ListAttachments(ctx context.Context, tenant, runtime string) ([]Attachment, error)
}
