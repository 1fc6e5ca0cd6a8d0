package store

import (
	"context"
	"errors"
	"time"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// SystemTenant is the tenant whose admins manage tenants. It always exists.
const SystemTenant = "default"

// MaxKeys bounds the keys of one user that can still be used.
const MaxKeys = 100

// ErrParent says that the key that makes a key was revoked.
var ErrParent = errors.New("the key that makes this key was revoked")

// ErrRole says that a role is higher than that of the user.
var ErrRole = errors.New("the role is higher than the user's")

// NewTenant describes a tenant to be created, with its first admin and the admin's key.
type NewTenant struct {
	ID, Title, Admin string
	Key              NewKey // its Tenant and User are the tenant and its admin
	// By is the tenant of the request.
	By      string
	Request Request
}

// NewUser describes a user to be created.
type NewUser struct {
	Owner
	Title   string
	Role    commonv1.Role
	Request Request
}

// UserUpdate describes new values of a user; nil leaves a value unchanged.
type UserUpdate struct {
	Owner
	Title   *string
	Role    *commonv1.Role
	Request Request
}

// NewKey describes a key to be created.
type NewKey struct {
	Owner
	ID, Title string
	Hash      []byte // the SHA-256 of its secret
	// Role is at most the user's; ROLE_UNSPECIFIED is the lower one of Most and the user's.
	Role, Most commonv1.Role
	Scopes     []string
	Creator    string
	Parent     string    // the id of the key that makes it; empty: no key of this tenant does
	Expire     time.Time // zero: it does not end
	Request    Request
}

// Revocation names a revocation: of a key, or of all keys of a user.
type Revocation struct {
	Owner
	Key   string    // empty: all keys of the user
	Since time.Time // when it was
	Limit int
}

// KeyPage selects a page of keys, the newest first.
type KeyPage struct {
	Tenant, User string // User empty: of all users
	// After continues behind this key (create time, then id, both descending).
	AfterTime time.Time
	AfterID   string
	Limit     int
}

// Resolved is what the holder of a key may do.
type Resolved struct {
	Owner
	Key    string // its id
	Role   commonv1.Role
	Scopes []string
	Expire time.Time // zero: it does not end
}

// KeyUse is a use of a key.
type KeyUse struct {
	Tenant, Key string
	Time        time.Time
}

// Identities stores tenants, users and keys. Keys with the same creation time are in the
// order of their ids.
type Identities interface {
	// CreateTenant creates a tenant, its admin and the admin's key, all or none.
	// ErrExists, ErrRequestIDReused. The answer's value is the id of the key.
	CreateTenant(ctx context.Context, n NewTenant) (Answer, error)
	// GetTenant reads a tenant, or ErrNotFound.
	GetTenant(ctx context.Context, tenant string) (*sessionv1.Tenant, error)
	// ListTenants lists tenants behind the one with the id after, by id.
	ListTenants(ctx context.Context, after string, limit int) ([]*sessionv1.Tenant, error)

	// CreateUser creates a user, or enables a disabled one with the new values.
	// ErrExists, ErrRequestIDReused, ErrNotFound without the tenant.
	CreateUser(ctx context.Context, n NewUser) (Answer, error)
	// GetUser reads a user, or ErrNotFound.
	GetUser(ctx context.Context, o Owner) (*sessionv1.User, error)
	// ListUsers lists a tenant's users behind the one with the id after, by id.
	ListUsers(ctx context.Context, tenant, after string, limit int) ([]*sessionv1.User, error)
	// UpdateUser changes a user that is not disabled. ErrNotFound, ErrRequestIDReused.
	UpdateUser(ctx context.Context, u UserUpdate) (Answer, error)
	// DisableUser disables a user, revokes the user's keys with their descendants, and pauses the user's triggers.
	// ErrNotFound, ErrRequestIDReused.
	DisableUser(ctx context.Context, o Owner, r Request) (Answer, error)

	// CreateKey creates a key. ErrNotFound without the user or if the user is disabled,
	// ErrParent without the parent or if it is revoked, ErrRole, ErrTooMany, ErrRequestIDReused.
	// The answer's value is the key's id.
	CreateKey(ctx context.Context, n NewKey) (Answer, error)
	// GetKey reads a key, or ErrNotFound.
	GetKey(ctx context.Context, tenant, id string) (*sessionv1.Key, error)
	// ListKeys lists a page of keys.
	ListKeys(ctx context.Context, p KeyPage) ([]*sessionv1.Key, error)
	// RevokeKey ends a key and its descendants: the keys that it has made, and theirs. The first time
	// counts. ErrNotFound, ErrRequestIDReused.
	RevokeKey(ctx context.Context, tenant, id string, r Request) (Answer, error)
	// RevokedKeys lists the ids of the keys that a revocation has ended, by id, without the key that it names.
	RevokedKeys(ctx context.Context, r Revocation) ([]string, error)
	// ResolveKey finds the key with this hash. ErrNotFound if there is none, it was
	// revoked, it has ended by the database's clock, or its user is disabled.
	ResolveKey(ctx context.Context, hash []byte) (Resolved, error)
	// HasKeys reports whether a key was ever created, of a tenant or of any ("").
	HasKeys(ctx context.Context, tenant string) (bool, error)
	// KeysUsed records the last use of keys. It leaves a later use unchanged, and keys
	// that do not exist.
	KeysUsed(ctx context.Context, uses []KeyUse) error
}
