package load

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// rewindOneIn is after how many rounds of a session one returns to a checkpoint.
const rewindOneIn = 10

func (r replica) checkpoints(ctx context.Context, session string) ([]string, error) {
	resp, err := r.points.ListCheckpoints(ctx, &sessionv1.ListCheckpointsRequest{Parent: session})
	return names(resp), judge("ListCheckpoints", err)
}

func (r replica) rewind(ctx context.Context, session, checkpoint, key string) error {
	_, err := r.points.RewindSession(ctx, &sessionv1.RewindSessionRequest{Name: session, Checkpoint: checkpoint, RequestId: key})
	return judge("RewindSession", err)
}

func (r rest) checkpoints(ctx context.Context, session string) ([]string, error) {
	resp := &sessionv1.ListCheckpointsResponse{}
	err := r.get(ctx, "/v1/"+session+"/checkpoints", func(b []byte) error { return protojson.Unmarshal(b, resp) })
	return names(resp), err
}

func (r rest) rewind(ctx context.Context, session, checkpoint, key string) error {
	return r.post(ctx, "/v1/"+session+":rewind", fmt.Sprintf(`{"checkpoint":%q}`, checkpoint), key, func([]byte) error { return nil })
}

func names(resp *sessionv1.ListCheckpointsResponse) []string {
	var all []string
	for _, c := range resp.GetCheckpoints() {
		all = append(all, c.GetName())
	}
	return all
}

// rewind returns to one of the latest checkpoints, if there are any.
func (c *client) rewind(ctx context.Context, session string) {
	list, _, ok := c.mutate(ctx, c.rand, func(ctx context.Context, e entry, _ string) (string, error) {
		all, err := e.checkpoints(ctx, session)
		return strings.Join(all, " "), err
	})
	all := strings.Fields(list)
	if !ok || len(all) == 0 {
		return
	}
	checkpoint := all[c.rand.IntN(min(len(all), 6))]
	refused, key, ok := c.mutate(ctx, c.rand, func(ctx context.Context, e entry, key string) (string, error) {
		return "", e.rewind(ctx, session, checkpoint, key)
	})
	if !ok && refused == "" {
		return // the run is over
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Rewinds = append(c.record.Rewinds, record.Rewind{RequestID: key, Checkpoint: checkpoint, Refused: refused, Time: time.Now()})
}
