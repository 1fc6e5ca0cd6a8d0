package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
)

// keysCommand is about API keys.
type keysCommand struct {
	Create shows[createKey, *sessionv1.CreateKeyResponse] `cmd:"" help:"Make a key and print it, this once."`
	List   lists[listKeys, *sessionv1.Key]                `cmd:"" help:"List keys, the newest first: yours, or the tenant's for an admin."`
	Revoke revokeKeyCommand                               `cmd:"" help:"End a key for ever, and the keys that it has made."`
}

// roleName returns a role as people write it.
func roleName(r commonv1.Role) string {
	return strings.ToLower(strings.TrimPrefix(r.String(), "ROLE_"))
}

// roleOf reads a role that a person wrote; the parser has checked it.
func roleOf(name string) commonv1.Role {
	return commonv1.Role(commonv1.Role_value["ROLE_"+strings.ToUpper(name)])
}

type createKey struct {
	Title  string        `help:"What the key is for."`
	Role   string        `enum:"viewer,user,operator,admin," default:"" help:"What it may do: viewer, user, operator or admin; default: as much as you and its user."`
	Scopes []string      `placeholder:"SCOPE" help:"Limit it to these scopes, such as sessions.read, or work.write:ENVIRONMENT for a worker of that environment."`
	User   string        `help:"Its user, if it is not yours; for admins."`
	TTL    time.Duration `name:"expires-in" placeholder:"720h" help:"How long it is valid; default: until it is revoked, or until your token or key ends."`
	plainJSON
	once // a repeated request does not show the key
}

func (f createKey) request() proto.Message {
	k := &sessionv1.Key{Title: f.Title, Role: roleOf(f.Role), Scopes: slices.Clone(f.Scopes)}
	for i, s := range k.Scopes {
		k.Scopes[i] = strings.Replace(s, ":env_", ":", 1) // the id as Managed Agents has it
	}
	if f.User != "" {
		k.User = userName(f.User)
	}
	if f.TTL > 0 {
		k.ExpireTime = timestamppb.New(time.Now().Add(f.TTL))
	}
	return &sessionv1.CreateKeyRequest{Key: k}
}

// show prints nothing but the key to standard output, so that a script can take it.
func (createKey) show(s stdio, made *sessionv1.CreateKeyResponse) error {
	end := ""
	if made.GetKey().GetExpireTime() != nil {
		end = ", which ends at " + made.GetKey().GetExpireTime().AsTime().Format(time.RFC3339)
	}
	fmt.Fprintf(s.err, "%s is a key of %s%s. It is shown only now:\n", made.GetKey().GetName(), made.GetKey().GetUser(), end)
	_, err := fmt.Fprintln(s.out, made.GetSecret())
	return err
}

type listKeys struct {
	Limit int    `default:"50" help:"The most keys."`
	User  string `help:"Only keys of this user."`
	jsonList
}

func (f listKeys) limit() int { return f.Limit }

func (f listKeys) request() proto.Message {
	r := &sessionv1.ListKeysRequest{}
	if f.User != "" {
		r.User = userName(f.User)
	}
	return r
}

func (listKeys) row(k *sessionv1.Key) [][]string {
	state := "valid"
	switch {
	case k.GetRevokeTime() != nil:
		state = "revoked"
	case k.GetExpireTime() != nil && k.GetExpireTime().AsTime().Before(time.Now()):
		state = "ended"
	}
	scopes := "all"
	if len(k.GetScopes()) > 0 {
		scopes = strings.Join(k.GetScopes(), " ")
	}
	return [][]string{
		{"KEY", bare(k.GetName())}, {"USER", userID(k.GetUser())}, {"ROLE", roleName(k.GetRole())}, {"SCOPES", scopes}, {"STATE", state},
		{"CREATED", stamp(k.GetCreateTime())}, {"LAST USED", stamp(k.GetLastUseTime())},
		{"MADE BY", bare(cmp.Or(k.GetParent(), k.GetCreator()))}, {"TITLE", k.GetTitle()},
	}
}

type revokeKeyCommand struct {
	ID  string `arg:"" help:"The key, as fairlead keys list names it."`
	Yes bool   `help:"Revoke it also if the key of this command ends with it."`
	target
}

// ended lists keys that a revocation has ended.
func ended(title string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return title + "\n  " + strings.Join(names, "\n  ") + "\n"
}

// mostParents bounds how far a key's parents are followed.
const mostParents = 100

// madeBy reports whether a key has made the caller's own, directly or through other keys.
func madeBy(ctx context.Context, people sessionv1.IdentityServiceClient, name string) (own string, made bool) {
	me, err := people.GetCurrentUser(ctx, &sessionv1.GetCurrentUserRequest{})
	if err != nil || !strings.HasPrefix(me.GetCredential(), "keys/") {
		return "", false
	}
	at := me.GetCredential()
	for range mostParents {
		k, err := people.GetKey(ctx, &sessionv1.GetKeyRequest{Name: at})
		if err != nil || k.GetKey().GetParent() == "" { // the caller may not see a key of another user
			return "", false
		}
		if at = k.GetKey().GetParent(); at == name {
			return me.GetCredential(), true
		}
	}
	return "", false
}

// Run revokes a key.
func (c revokeKeyCommand) Run(ctx context.Context, s stdio) error {
	if strings.HasPrefix(c.ID, "fl_") {
		return usage("that is a key's secret; name the key by its id, which `fairlead keys list` shows")
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		name := "keys/" + strings.TrimPrefix(c.ID, "keys/")
		if own, made := madeBy(ctx, sessionv1.NewIdentityServiceClient(b.conn), name); made && !c.Yes {
			return usage("%s has made %s, the key of this command, which would end with it and with all others that it has made. "+
				"Use a key that it has not made, such as one from `fairlead admin key`, or add --yes", name, own)
		}
		k, err := get[*sessionv1.Key](ctx, b, &sessionv1.RevokeKeyRequest{Name: name})
		if err != nil {
			return terminal.Explained(err)
		}
		_, err = fmt.Fprintf(s.out, "%s is revoked; every server refuses it within five seconds\n%s", k.GetName(),
			ended("These ended with it, because it has made them:", k.GetRevokedKeys()))
		return err
	})
}
