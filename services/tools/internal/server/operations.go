package server

import (
	"context"
	"crypto/sha256"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/page"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/tools/internal/operation"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// keepRequests is how long idempotency keys are kept, as the contract promises.
const keepRequests = 24 * time.Hour

// shownBytes bounds the shown head and tail of an operation's output.
const shownBytes = 16 << 10

// Operations serves OperationService.
type Operations struct {
	toolsv1.UnimplementedOperationServiceServer
	store   store.Store
	manager *operation.Manager
}

// NewOperations returns the server of OperationService.
func NewOperations(s store.Store, m *operation.Manager) *Operations {
	return &Operations{store: s, manager: m}
}

// seen reads an operation that the caller may see: its own, or any of the tenant for an operator.
func (s *Operations) seen(ctx context.Context, name string) (store.Operation, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return store.Operation{}, err
	}
	o, err := s.store.GetOperation(ctx, store.OperationKey{Tenant: tenant, ID: strings.TrimPrefix(name, operation.Prefix)})
	if p, _ := principal.From(ctx); err == nil && !p.Sees(o.User) {
		err = store.ErrNoOperation
	}
	return o, outward(err, name)
}

// GetOperation implements OperationService.
func (s *Operations) GetOperation(ctx context.Context, q *toolsv1.GetOperationRequest) (*toolsv1.GetOperationResponse, error) {
	o, err := s.seen(ctx, q.GetName())
	if err != nil {
		return nil, err
	}
	message, err := operationToProto(o)
	return &toolsv1.GetOperationResponse{Operation: message}, err
}

// ListOperations implements OperationService.
func (s *Operations) ListOperations(ctx context.Context, q *toolsv1.ListOperationsRequest) (*toolsv1.ListOperationsResponse, error) {
	tenant, err := tenantOf(ctx)
	if err != nil {
		return nil, err
	}
	scope, owner := "ListOperations\x00"+tenant+"\x00"+q.GetSession(), ""
	if p, _ := principal.From(ctx); p.Role < principal.RoleOperator {
		owner = p.User
		scope += "\x00" + owner
	}
	size := page.Size(q.GetPageSize(), defaultPage, maxPage)
	want := store.OperationPage{Tenant: tenant, Session: q.GetSession(), User: owner}
	if q.GetPageToken() != "" {
		want.Before = &store.OperationCursor{}
		if err := page.Decode(q.GetPageToken(), scope, want.Before); err != nil {
			return nil, outward(err, "")
		}
	}
	listed, more, err := page.Fill(size, func(last *toolsv1.Operation, n int) ([]*toolsv1.Operation, error) {
		if last != nil {
			want.Before = cursorAt(last)
		}
		want.Limit = n
		return s.listOperations(ctx, want)
	})
	if err != nil {
		return nil, err
	}
	answer := &toolsv1.ListOperationsResponse{Operations: listed}
	if more {
		answer.NextPageToken = page.Encode(scope, cursorAt(listed[len(listed)-1]))
	}
	return answer, nil
}

func cursorAt(o *toolsv1.Operation) *store.OperationCursor {
	return &store.OperationCursor{CreateTime: o.GetCreateTime().AsTime(), ID: o.GetCallId()}
}

// listOperations reads operations in the form for lists.
func (s *Operations) listOperations(ctx context.Context, want store.OperationPage) ([]*toolsv1.Operation, error) {
	found, err := s.store.ListOperations(ctx, want)
	if err != nil {
		return nil, outward(err, "")
	}
	listed := make([]*toolsv1.Operation, len(found))
	for i, o := range found {
		if listed[i], err = operationToProto(o); err != nil {
			return nil, err
		}
		listed[i].Network = nil
		if proto.Size(listed[i]) > page.MaxBytes {
			listed[i].Content, listed[i].Shortened = nil, true
		}
	}
	return listed, nil
}

// CancelOperation implements OperationService.
func (s *Operations) CancelOperation(ctx context.Context, q *toolsv1.CancelOperationRequest) (*toolsv1.CancelOperationResponse, error) {
	o, err := s.seen(ctx, q.GetName())
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256([]byte(q.GetName()))
	o, err = s.manager.Cancel(ctx, o.OperationKey, &store.Request{
		Tenant: o.Tenant, Method: "CancelOperation", ID: q.GetRequestId(), Digest: digest[:], Keep: keepRequests,
	})
	if err != nil {
		return nil, outward(err, q.GetName())
	}
	message, err := operationToProto(o)
	return &toolsv1.CancelOperationResponse{Operation: message}, err
}

func operationToProto(o store.Operation) (*toolsv1.Operation, error) {
	m := &toolsv1.Operation{
		Name: operation.Prefix + o.ID, Session: o.Session, CallId: o.ID, Tool: o.Tool, State: operation.States[o.State],
		CreateTime: timestamppb.New(o.CreateTime), ExpireTime: timestamppb.New(o.ExpireTime), Progress: o.Progress, ExitCode: o.ExitCode,
		OutputHead:  valid(o.Head[:min(len(o.Head), shownBytes)]),
		OutputTail:  valid(o.Tail[max(0, len(o.Tail)-shownBytes):]),
		OutputBytes: o.Bytes,
	}
	if !o.EndTime.IsZero() {
		m.EndTime = timestamppb.New(o.EndTime)
		brought, err := operation.Content(o)
		if err != nil {
			return nil, err
		}
		m.Content, m.Network = brought.GetContent(), brought.GetNetwork()
	}
	return m, nil
}

func valid(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
