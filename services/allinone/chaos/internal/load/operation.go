package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"

	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
)

// looker is a way to operations: a tools replica, or the gateway.
type looker interface {
	name() string
	look(ctx context.Context, operation string) (record.Look, error)
}

// tools is a tools replica's public face.
type tools struct {
	address string
	client  toolsv1.OperationServiceClient
}

func newTools(address string, conn grpc.ClientConnInterface) tools {
	return tools{address, toolsv1.NewOperationServiceClient(conn)}
}

func (t tools) name() string { return t.address }

func (t tools) look(ctx context.Context, operation string) (record.Look, error) {
	resp, err := t.client.GetOperation(ctx, &toolsv1.GetOperationRequest{Name: operation})
	return seen(t.address, resp.GetOperation()), judge("GetOperation", err)
}

func (r rest) look(ctx context.Context, operation string) (record.Look, error) {
	o := &toolsv1.Operation{}
	err := r.get(ctx, "/v1/"+operation, func(b []byte) error { return protojson.Unmarshal(b, o) })
	return seen(r.name(), o), err
}

func seen(via string, o *toolsv1.Operation) record.Look {
	l := record.Look{Via: via, Time: time.Now(), State: o.GetState(), Exit: -1, Output: o.GetOutputHead() + o.GetOutputTail()}
	if o != nil && o.ExitCode != nil {
		l.Exit = *o.ExitCode
	}
	return l
}

// began looks at an operation in the background until it has ended, unless the clients have
// left.
func (c *client) began(ctx context.Context, call, operation string, seed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return
	}
	if c.record.Operations == nil {
		c.record.Operations = map[string]*record.Operation{}
	}
	o := c.record.Operations[call]
	if o == nil {
		o = &record.Operation{}
		c.record.Operations[call] = o
	}
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a schedule, not a secret
	c.people.Go(func() { c.look(ctx, o, operation, r) })
}

// look looks at an operation at random until it has ended, and once more.
func (c *client) look(ctx context.Context, o *record.Operation, operation string, r *rand.Rand) {
	for more := 1; more >= 0 && ctx.Err() == nil; {
		at := c.door.lookers[r.IntN(len(c.door.lookers))]
		try, cancel := context.WithTimeout(ctx, attemptTime)
		l, err := at.look(try, operation)
		cancel()
		switch {
		case err == nil:
			c.mu.Lock()
			o.Looks = append(o.Looks, l)
			c.mu.Unlock()
			if l.Ended() {
				more--
			}
		case !errors.Is(err, errAgain) && ctx.Err() == nil:
			c.refused(at, err)
		}
		wait(ctx, time.Duration(100+r.IntN(1000))*time.Millisecond)
	}
}
