package server

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/jobs/deletion"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/store"
)

// UserServer implements UserService.
type UserServer struct {
	sessionv1.UnimplementedUserServiceServer
	s *Server
}

// UserService returns the server of UserService.
func (s *Server) UserService() *UserServer { return &UserServer{s: s} }

// DeleteUserStorage deletes the caller's stored files. The deletion is durable once
// the store has it: nodes that can be reached delete the files now, the others as soon
// as they can.
func (x *UserServer) DeleteUserStorage(
	ctx context.Context, r *sessionv1.DeleteUserStorageRequest,
) (*sessionv1.DeleteUserStorageResponse, error) {
	if own := "users/" + user(ctx) + "/storage"; r.Name != own && r.Name != "users/me/storage" {
		return nil, refusal.Of(codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_OTHER_USER,
			"You may delete only your own storage, which is "+own+".", apierr.Resource("fairlead.dev/UserStorage", r.Name, "another user's"))
	}
	var nodes []string
	if x.s.Nodes.Managed() {
		nodes = x.s.Nodes.List()
	}
	tenant := key(ctx, "").Tenant
	jobs := deletion.StorageJobs(tenant, user(ctx), nodes)
	answer, err := x.s.Store.RequestJobs(ctx, tenant, jobs, keepForADay(store.RequestOf("DeleteUserStorage", r.Name, r.RequestId, r)))
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{RequestID: r.RequestId})
	}
	if answer.Replayed {
		return &sessionv1.DeleteUserStorageResponse{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, deleteWait)
	defer cancel()
	var wg sync.WaitGroup
	for _, j := range jobs {
		wg.Go(func() {
			if err := x.s.Try(ctx, tenant, j.Kind, j.ID); err != nil {
				x.s.Log.WarnContext(ctx, "a user's storage is deleted later", "user", user(ctx), "error", err)
			}
		})
	}
	wg.Wait()
	return &sessionv1.DeleteUserStorageResponse{}, nil
}
