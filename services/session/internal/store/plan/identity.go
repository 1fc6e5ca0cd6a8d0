package plan

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Tenant is a tenant's row.
type Tenant struct {
	ID, Title  string
	CreateTime time.Time
}

// Proto returns the tenant as it is shown.
func (t *Tenant) Proto() *sessionv1.Tenant {
	return &sessionv1.Tenant{Name: "tenants/" + t.ID, Title: t.Title, CreateTime: timestamppb.New(t.CreateTime)}
}

// User is a user's row.
type User struct {
	store.Owner
	Title                  string
	Role                   commonv1.Role
	Disabled               bool
	CreateTime, UpdateTime time.Time
}

// Proto returns the user as it is shown.
func (u *User) Proto() *sessionv1.User {
	return &sessionv1.User{
		Name: UserName(u.User), Title: u.Title, Role: u.Role, Disabled: u.Disabled,
		CreateTime: timestamppb.New(u.CreateTime), UpdateTime: timestamppb.New(u.UpdateTime),
	}
}

// UserName returns the resource name of the user with this id.
func UserName(id string) string { return "users/" + id }

// Key is a key's row.
type Key struct {
	store.Owner
	ID, Title, Scopes, Creator, Parent string
	Role                               commonv1.Role
	CreateTime                         time.Time
	Expire, Revoke, LastUse            *time.Time
}

// Proto returns the key as it is shown.
func (k *Key) Proto() *sessionv1.Key {
	return &sessionv1.Key{
		Name: KeyName(k.ID), Parent: KeyName(k.Parent), User: UserName(k.User), Title: k.Title, Role: k.Role, Scopes: strings.Fields(k.Scopes), Creator: UserName(k.Creator),
		CreateTime: timestamppb.New(k.CreateTime), ExpireTime: timestamp(k.Expire), RevokeTime: timestamp(k.Revoke), LastUseTime: timestamp(k.LastUse),
	}
}

// KeyName returns the resource name of the key with this id, or "" without an id.
func KeyName(id string) string {
	if id == "" {
		return ""
	}
	return "keys/" + id
}

func timestamp(t *time.Time) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return timestamppb.New(*t)
}

// KeyRole returns the role of a new key of a user with this role, or ErrRole.
func KeyRole(n store.NewKey, user commonv1.Role) (commonv1.Role, error) {
	switch {
	case n.Role == commonv1.Role_ROLE_UNSPECIFIED:
		return min(n.Most, user), nil
	case n.Role > user:
		return 0, store.ErrRole
	}
	return n.Role, nil
}
