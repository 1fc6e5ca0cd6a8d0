package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"
)

// ErrNoProfile says that a tenant has no such permission profile.
var ErrNoProfile = errors.New("there is no such permission profile of the tenant")

// ErrProfileExists says that a tenant has a permission profile of this id.
var ErrProfileExists = errors.New("the tenant has a permission profile of this id")

// ErrProfileChanged says that a permission profile is another than expected.
var ErrProfileChanged = errors.New("the permission profile was changed meanwhile")

// ErrNoGrant says that there is no such grant, or that it is another user's.
var ErrNoGrant = errors.New("there is no such grant")

// Profile is a permission profile of a tenant.
type Profile struct {
	Tenant, ID  string
	Description string
	// Rules are an encoded PermissionRules.
	Rules []byte
	// Etag is new whenever the profile is written.
	Etag                   string
	CreateTime, UpdateTime time.Time
}

// ProfileWrite creates or changes a profile.
type ProfileWrite struct {
	// Profile is what is written. Its times are the database's.
	Profile
	// Create refuses a profile that exists with ErrProfileExists; otherwise one that
	// does not exist is ErrNoProfile.
	Create bool
	// Expected, unless it is empty, refuses a profile with another Etag with
	// ErrProfileChanged.
	Expected string
	// Request is the client's request. Repeating it changes nothing.
	Request *Request
}

// Grant is what a person allowed for longer than one call.
type Grant struct {
	Tenant, ID string
	// User is the user for whose calls it holds. Session restricts it to one session,
	// unless it is empty, and Profile to the calls on which this profile decides.
	User, Session, Profile string
	// Rule covers the calls.
	Rule string
	// Binding is the server and the definition of the tool for which it holds; empty for a tool without a server.
	Binding string
	// Approver gave it, together with the approval of the call CallID.
	Approver, CallID string
	CreateTime       time.Time
}

// GrantID returns the id of a grant, which follows from whom it is for, its rule and its binding.
func GrantID(user, session, profile, rule, binding string) string {
	h := sha256.New()
	parts := []string{user, session, profile, rule}
	if binding != "" {
		parts = append(parts, binding)
	}
	for _, s := range parts {
		sum := sha256.Sum256([]byte(s))
		h.Write(sum[:])
	}
	return "g" + hex.EncodeToString(h.Sum(nil)[:15])
}

// GrantPage selects grants of a tenant, the newest first.
type GrantPage struct {
	Tenant string
	// User and Session restrict the list, unless they are empty. With Holding, the list
	// has the grants of the session and those of all sessions.
	User, Session string
	Holding       bool
	// Before is the last grant of the page before; nil for the first page.
	Before *GrantCursor
	Limit  int
}

// GrantCursor is the position of a grant in a list.
type GrantCursor struct {
	CreateTime time.Time
	ID         string
}

// Permissions stores what decides on calls besides the configuration. A change of a
// tenant's profiles or grants raises the tenant's version.
type Permissions interface {
	// PermissionVersion returns the version of a tenant, 0 before any change. Enter
	// returns it, too.
	PermissionVersion(ctx context.Context, tenant string) (int64, error)

	// GetProfile reads a profile. One that does not exist is ErrNoProfile.
	GetProfile(ctx context.Context, tenant, id string) (Profile, error)

	// ListProfiles lists up to limit profiles by id, from the first one behind after.
	ListProfiles(ctx context.Context, tenant, after string, limit int) ([]Profile, error)

	// WriteProfile creates or changes a profile.
	WriteProfile(ctx context.Context, w ProfileWrite) (Profile, error)

	// DeleteProfile deletes a profile. Of w only the names, Expected and Request count.
	DeleteProfile(ctx context.Context, w ProfileWrite) error

	// ListGrants reads a page.
	ListGrants(ctx context.Context, p GrantPage) ([]Grant, error)

	// DeleteGrant deletes a grant of a user, or of any user if user is empty. One that
	// does not exist is ErrNoGrant, unless the request is repeated.
	DeleteGrant(ctx context.Context, tenant, id, user string, q *Request) error

	// DeleteGrants deletes all grants of a user. It may be repeated.
	DeleteGrants(ctx context.Context, tenant, user string) error
}
