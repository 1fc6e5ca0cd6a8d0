// Package peer asks the service's other replicas for their calls.
package peer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/tools/internal/call"
	"github.com/fairlead/fairlead/services/tools/internal/store"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

// mark is the metadata of a request that a replica forwards. It is trusted only on
// the peer face, where CallService is.
const mark = "fairlead-forwarded"

// Forwarded reports whether a request comes from another replica.
func Forwarded(ctx context.Context) bool {
	return len(metadata.ValueFromIncomingContext(ctx, mark)) > 0
}

// Peers is a call.Peers over gRPC. It makes a connection for each request:
// requests are rare, and replicas come and go.
type Peers struct {
	dial func(address string) (*grpc.ClientConn, error)
}

var _ call.Peers = (*Peers)(nil)

// New returns Peers that connect with dial.
func New(dial func(address string) (*grpc.ClientConn, error)) *Peers { return &Peers{dial: dial} }

// Call implements call.Peers.
func (p *Peers) Call(ctx context.Context, address string, q call.Request, send call.Send) error {
	return p.request(ctx, address, func(ctx context.Context, calls toolsv1.CallServiceClient) error {
		stream, err := calls.CallTool(ctx, &toolsv1.CallToolRequest{
			Call: ref(q.Ref), Tool: q.Tool, ArgumentsJson: q.Arguments, Profile: q.Policy.Profile, AllowedTools: q.Allowed,
			Servers: q.Servers, Approval: q.Approval, Answer: q.Answer, Mode: q.Policy.Mode, Filters: q.Policy.Filters,
		})
		if err != nil {
			return err
		}
		for {
			m, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := send(m); err != nil {
				return sendError{err}
			}
		}
	})
}

// Cancel implements call.Peers.
func (p *Peers) Cancel(ctx context.Context, address string, r store.Ref) (result *tool.Result, err error) {
	err = p.request(ctx, address, func(ctx context.Context, calls toolsv1.CallServiceClient) error {
		answer, err := calls.CancelCall(ctx, &toolsv1.CancelCallRequest{Call: ref(r)})
		result = answer.GetResult()
		return err
	})
	return result, err
}

// sendError is a failure to pass on a piece. It is not a failure of the
// replica.
type sendError struct{ error }

func (e sendError) Unwrap() error { return e.error }

// request dials a replica for one request. That the replica cannot be reached is call.ErrReplicaUnavailable.
func (p *Peers) request(ctx context.Context, address string, do func(context.Context, toolsv1.CallServiceClient) error) (err error) {
	conn, err := p.dial(address)
	if err != nil {
		return fmt.Errorf("%w: %s", call.ErrReplicaUnavailable, err.Error())
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, mark, "1"))
	defer cancel()
	err = do(ctx, toolsv1.NewCallServiceClient(rpc.AsService(conn)))
	var own sendError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own.error
	}
	switch status.Code(err) {
	// The replica stops, fails or is gone: the journal says how the call goes on.
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Aborted:
		return fmt.Errorf("%w: %s", call.ErrReplicaUnavailable, err.Error()) // its status must not be shown
	default:
		return err
	}
}

func ref(r store.Ref) *commonv1.CallRef {
	return &commonv1.CallRef{Session: r.Session, Holder: r.Holder, Epoch: r.Epoch, CallId: r.CallID, Node: r.Node, WorkspaceGeneration: r.Generation}
}
