package tenancy

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
	"github.com/fairlead/fairlead/services/session/internal/jobs"
	"github.com/fairlead/fairlead/services/session/internal/refusal"
	"github.com/fairlead/fairlead/services/session/internal/request"
)

// storageWait is how long DeleteUserStorage waits for the nodes. Jobs do the rest.
const storageWait = 5 * time.Second

// UserServer implements UserService.
type UserServer struct {
	sessionv1.UnimplementedUserServiceServer
	*Config
}

// DeleteUserStorage deletes the caller's stored files. The deletion is durable once
// the store has it: nodes that can be reached delete the files now, the others as soon
// as they can.
func (x *UserServer) DeleteUserStorage(
	ctx context.Context, r *sessionv1.DeleteUserStorageRequest,
) (*sessionv1.DeleteUserStorageResponse, error) {
	if own := "users/" + request.User(ctx) + "/storage"; r.Name != own && r.Name != "users/me/storage" {
		return nil, refusal.Of(codes.PermissionDenied, sessionv1.ErrorReason_ERROR_REASON_OTHER_USER,
			"You may delete only your own storage, which is "+own+".", apierr.Resource("fairlead.dev/UserStorage", r.Name, "another user's"))
	}
	var nodes []string
	if x.Nodes.Managed() {
		nodes = x.Nodes.List()
	}
	tenant := request.Key(ctx, "").Tenant
	jobs := jobs.StorageJobs(tenant, request.User(ctx), nodes)
	answer, err := x.Store.RequestJobs(ctx, tenant, jobs, request.Lasting("DeleteUserStorage", r.Name, r))
	if err != nil {
		return nil, refusal.Store(err, refusal.Subject{RequestID: r.RequestId})
	}
	if answer.Replayed {
		return &sessionv1.DeleteUserStorageResponse{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storageWait)
	defer cancel()
	var wg sync.WaitGroup
	for _, j := range jobs {
		wg.Go(func() {
			if err := x.Try(ctx, tenant, j.Kind, j.ID); err != nil {
				x.Log.WarnContext(ctx, "a user's storage is deleted later", "user", request.User(ctx), "error", err)
			}
		})
	}
	wg.Wait()
	return &sessionv1.DeleteUserStorageResponse{}, nil
}
