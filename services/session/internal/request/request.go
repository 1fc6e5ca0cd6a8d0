// Package request reads what all handlers of RPCs read: who calls, whom and what a request names, and the page of a list.
package request

import (
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// Caller returns the principal of a request.
func Caller(ctx context.Context) principal.Principal {
	p, _ := principal.From(ctx)
	return p
}

// User returns the id of the caller.
func User(ctx context.Context) string { return Caller(ctx).User }

// UserOf returns the user of a resource name; `users/me` is the caller.
func UserOf(ctx context.Context, name string) store.Owner {
	p := Caller(ctx)
	o := store.Owner{Tenant: p.Tenant, User: strings.TrimPrefix(name, "users/")}
	if o.User == "me" {
		o.User = p.User
	}
	return o
}

// Key returns the store's key of `sessions/{session}`; the schema has checked the form. The tenant comes only from the
// principal.
func Key(ctx context.Context, session string) store.Key {
	return store.Key{Tenant: principal.Tenant(ctx), Session: strings.TrimPrefix(session, "sessions/")}
}

// LastSegment returns the id at the end of a resource name.
func LastSegment(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// OwnScope returns the scope of the request ids of a request that names nothing: no user gets the answer to another's.
// Before there were users it was empty, and so it stays for the only one of then.
func OwnScope(ctx context.Context) string {
	if u := User(ctx); u != "default" {
		return "users/" + u
	}
	return ""
}

// KeepForADay gives a request id a lifetime of its own, independent of a session.
func KeepForADay(r store.Request) store.Request {
	r.KeepUntil = time.Now().Add(store.HoldTime)
	return r
}

// Lasting returns the id of a request for a parent, or for what it names, which lives as KeepForADay says.
func Lasting(method, parent string, r Identified) store.Request {
	return KeepForADay(store.RequestOf(method, parent, r.GetRequestId(), r))
}

// Identified is a request that has an id.
type Identified interface {
	proto.Message
	GetRequestId() string
}

// Cursor is the place of a resource in a list by time.
type Cursor struct {
	Time time.Time `json:"t"`
	ID   string    `json:"i"`
}

// paging is a request for a page.
type paging interface {
	GetPageSize() int32
	GetPageToken() string
}

// item is an entry of a list.
type item interface {
	comparable
	proto.Message
}

// named is a resource.
type named interface {
	item
	GetName() string
}

// ByID is the place of a resource in a list in the order of ids.
func ByID[T named](t T) string { return LastSegment(t.GetName()) }

// ByName is the place of a resource in a list in the order of names.
func ByName[T named](t T) string { return t.GetName() }

// List lists a page. scope names the list, and at is the place of an entry in it. about is for the errors of list, which
// returns the n entries behind a place; the zero place is the beginning.
func List[T item, C any](
	scope string, r paging, about refusal.Subject, at func(T) C, list func(after C, n int) ([]T, error),
) (all []T, next string, err error) {
	var after C
	if r.GetPageToken() != "" {
		if err := page.Decode(r.GetPageToken(), scope, &after); err != nil {
			return nil, "", refusal.Store(err, refusal.Subject{})
		}
	}
	all, more, err := page.Fill(page.Size(r.GetPageSize(), 50, 1000), func(last T, n int) ([]T, error) {
		var none T
		if last != none {
			after = at(last)
		}
		return list(after, n)
	})
	if err != nil {
		return nil, "", refusal.Store(err, about)
	}
	if more {
		next = page.Encode(scope, at(all[len(all)-1]))
	}
	return all, next, nil
}
