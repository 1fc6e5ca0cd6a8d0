package peer

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/placement"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// nodeServer implements NodeService.
type nodeServer struct {
	sessionv1.UnimplementedNodeServiceServer
	*Config
}

// states maps the states of placement.
var states = map[placement.State]sessionv1.NodeState{
	placement.Ready:  sessionv1.NodeState_NODE_STATE_READY,
	placement.Silent: sessionv1.NodeState_NODE_STATE_SILENT,
	placement.Lost:   sessionv1.NodeState_NODE_STATE_LOST,
}

func (n *nodeServer) ListNodes(ctx context.Context, _ *sessionv1.ListNodesRequest) (*sessionv1.ListNodesResponse, error) {
	if !n.Nodes.Managed() {
		return nil, noNodes()
	}
	resp := &sessionv1.ListNodesResponse{}
	for _, name := range n.Nodes.List() {
		count, err := n.count(ctx, name)
		if err != nil {
			return nil, refusal.Store(err, refusal.Subject{})
		}
		resp.Nodes = append(resp.Nodes, &sessionv1.Node{
			Name: name, State: states[n.Nodes.State(name)], Draining: n.Nodes.Drained(name), Workspaces: count,
		})
	}
	return resp, nil
}

// count counts the workspaces on a node.
func (n *nodeServer) count(ctx context.Context, name string) (int64, error) {
	const page = 10_000
	for after, count := (store.Key{}), int64(0); ; {
		keys, err := n.Store.PlacedOn(ctx, name, after, page)
		count += int64(len(keys))
		if err != nil || len(keys) < page {
			return count, err
		}
		after = keys[page-1]
	}
}

func (n *nodeServer) DrainNode(ctx context.Context, r *sessionv1.DrainNodeRequest) (*sessionv1.DrainNodeResponse, error) {
	if !n.Nodes.Managed() {
		return nil, noNodes()
	}
	if !n.Nodes.Known(r.Node) {
		return nil, refusal.Of(codes.NotFound, sessionv1.ErrorReason_ERROR_REASON_NODE_NOT_FOUND,
			fmt.Sprintf("There is no sandbox node %q; there are %v.", r.Node, n.Nodes.List()), apierr.Resource("node", r.Node, "not configured"))
	}
	if err := n.Store.SetDraining(ctx, r.Node, r.Draining); err != nil {
		return nil, refusal.Store(err, refusal.Subject{})
	}
	if r.Draining {
		if err := n.Store.PutJobs(ctx, []store.Job{placement.DrainJob(r.Node)}); err != nil {
			return nil, refusal.Store(err, refusal.Subject{})
		}
	}
	n.Log.InfoContext(ctx, "the draining of a sandbox node changed", "node", r.Node, "draining", r.Draining)
	return &sessionv1.DrainNodeResponse{}, nil
}

func noNodes() error {
	return refusal.Of(codes.FailedPrecondition, sessionv1.ErrorReason_ERROR_REASON_NO_NODES,
		"There is one sandbox node, which needs no list. Set sandbox-nodes to have several, or run several servers on one Postgres.", apierr.Precondition("NODES", "sandbox-nodes", "not set"))
}
