package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// keysCommand is about API keys.
type keysCommand struct {
	Create createKeyCommand `cmd:"" help:"Make a key and print it, this once."`
	List   listKeysCommand  `cmd:"" help:"List keys, the newest first: yours, or the tenant's for an admin."`
	Revoke revokeKeyCommand `cmd:"" help:"End a key for ever, and the keys that it has made."`
}

// roleName returns a role as people write it.
func roleName(r commonv1.Role) string {
	return strings.ToLower(strings.TrimPrefix(r.String(), "ROLE_"))
}

// roleOf reads a role that a person wrote; the parser has checked it.
func roleOf(name string) commonv1.Role {
	return commonv1.Role(commonv1.Role_value["ROLE_"+strings.ToUpper(name)])
}

type createKeyCommand struct {
	Title  string        `help:"What the key is for."`
	Role   string        `enum:"viewer,user,operator,admin," default:"" help:"What it may do: viewer, user, operator or admin; default: as much as you and its user."`
	Scopes []string      `placeholder:"SCOPE" help:"Limit it to these scopes, such as sessions.read, or work.write:ENVIRONMENT for a worker of that environment."`
	User   string        `help:"Its user, if it is not yours; for admins."`
	TTL    time.Duration `name:"expires-in" placeholder:"720h" help:"How long it is valid; default: until it is revoked, or until your token or key ends."`
	JSON   bool          `name:"json" help:"Print JSON."`
	target
}

// Run makes a key. Nothing is printed but the key, so that a script can take it.
func (c createKeyCommand) Run(ctx context.Context, s stdio) error {
	k := &sessionv1.Key{Title: c.Title, Role: roleOf(c.Role), Scopes: slices.Clone(c.Scopes)}
	for i, s := range k.Scopes {
		k.Scopes[i] = strings.Replace(s, ":env_", ":", 1) // the id as Managed Agents has it
	}
	if c.User != "" {
		k.User = "users/" + strings.TrimPrefix(c.User, "users/")
	}
	if c.TTL > 0 {
		k.ExpireTime = timestamppb.New(time.Now().Add(c.TTL))
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		made, err := b.people.CreateKey(ctx, &sessionv1.CreateKeyRequest{Key: k, RequestId: id.New()})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return writeJSON(s.out, made)
		}
		end := ""
		if made.GetKey().GetExpireTime() != nil {
			end = ", which ends at " + made.GetKey().GetExpireTime().AsTime().Format(time.RFC3339)
		}
		fmt.Fprintf(s.err, "%s is a key of %s%s. It is shown only now:\n", made.GetKey().GetName(), made.GetKey().GetUser(), end)
		_, err = fmt.Fprintln(s.out, made.GetSecret())
		return err
	})
}

type listKeysCommand struct {
	Limit int    `default:"50" help:"The most keys."`
	User  string `help:"Only keys of this user."`
	JSON  bool   `name:"json" help:"Print one JSON key per line."`
	target
}

// Run lists keys.
func (c listKeysCommand) Run(ctx context.Context, s stdio) error {
	user := c.User
	if user != "" {
		user = "users/" + strings.TrimPrefix(user, "users/")
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.Key
		err := pages(ctx, c.Limit, func(size int32, token string) (int, string, error) {
			resp, err := b.people.ListKeys(ctx, &sessionv1.ListKeysRequest{User: user, PageSize: size, PageToken: token})
			all = append(all, resp.GetKeys()...)
			return len(resp.GetKeys()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		return listKeys(s.out, all)
	})
}

func listKeys(w io.Writer, all []*sessionv1.Key) error {
	rows := [][]string{{"KEY", "USER", "ROLE", "SCOPES", "STATE", "CREATED", "LAST USED", "MADE BY", "TITLE"}}
	for _, k := range all {
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
		rows = append(rows, []string{
			bare(k.GetName()), strings.TrimPrefix(k.GetUser(), "users/"), roleName(k.GetRole()), scopes, state,
			stamp(k.GetCreateTime()), stamp(k.GetLastUseTime()), bare(cmp.Or(k.GetParent(), k.GetCreator())), k.GetTitle(),
		})
	}
	return columns(w, rows)
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
		if own, made := madeBy(ctx, b.people, name); made && !c.Yes {
			return usage("%s has made %s, the key of this command, which would end with it and with all others that it has made. "+
				"Use a key that it has not made, such as one from `fairlead admin key`, or add --yes", name, own)
		}
		k, err := b.people.RevokeKey(ctx, &sessionv1.RevokeKeyRequest{Name: name, RequestId: id.New()})
		if err != nil {
			return terminal.Explained(err)
		}
		_, err = fmt.Fprintf(s.out, "%s is revoked; every server refuses it within five seconds\n%s", k.GetKey().GetName(),
			ended("These ended with it, because it has made them:", k.GetKey().GetRevokedKeys()))
		return err
	})
}
