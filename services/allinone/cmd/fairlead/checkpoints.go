package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/id"
)

// checkpointsCommand makes and lists points to go back to.
type checkpointsCommand struct {
	Create createCheckpointCommand `cmd:"" help:"Make a checkpoint of a session: its conversation and its files."`
	List   listCheckpointsCommand  `cmd:"" help:"List a session's checkpoints, the last one first."`
}

// createCheckpointCommand makes a checkpoint.
type createCheckpointCommand struct {
	Session     string `arg:"" help:"The session."`
	Description string `arg:"" optional:"" help:"A description of the checkpoint."`
	JSON        bool   `name:"json" help:"Print the checkpoint as JSON."`
	target
}

// Run makes a checkpoint.
func (c createCheckpointCommand) Run(ctx context.Context, s stdio) error {
	r := &sessionv1.CreateCheckpointRequest{
		Parent: sessionName(c.Session), Checkpoint: &sessionv1.Checkpoint{Description: c.Description}, RequestId: id.New(),
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var resp *sessionv1.CreateCheckpointResponse
		err := retry(ctx, func() (err error) {
			resp, err = b.points.CreateCheckpoint(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return writeJSON(s.out, resp.GetCheckpoint())
		}
		_, err = fmt.Fprintln(s.out, bare(resp.GetCheckpoint().GetName()))
		return err
	})
}

// listCheckpointsCommand lists checkpoints.
type listCheckpointsCommand struct {
	Session string `arg:"" help:"The session."`
	JSON    bool   `name:"json" help:"Print one JSON checkpoint per line."`
	target
}

// Run lists checkpoints.
func (c listCheckpointsCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var all []*sessionv1.Checkpoint
		err := pages(ctx, 0, func(size int32, token string) (int, string, error) {
			resp, err := b.points.ListCheckpoints(ctx, &sessionv1.ListCheckpointsRequest{Parent: sessionName(c.Session), PageSize: size, PageToken: token})
			all = append(all, resp.GetCheckpoints()...)
			return len(resp.GetCheckpoints()), resp.GetNextPageToken(), err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return printJSON(s.out, all)
		}
		return listCheckpoints(s.out, all)
	})
}

func listCheckpoints(w io.Writer, all []*sessionv1.Checkpoint) error {
	rows := [][]string{{"CHECKPOINT", "MADE", "BY", "DESCRIPTION"}}
	for _, c := range all {
		by := "request"
		if c.GetAutomatic() {
			by = "itself"
		}
		rows = append(rows, []string{bare(c.GetName()), stamp(c.GetCreateTime()), by, c.GetDescription()})
	}
	return columns(w, rows)
}

// rewindCommand goes back.
type rewindCommand struct {
	ID           string `arg:"" help:"The session."`
	Checkpoint   string `arg:"" optional:"" help:"The checkpoint; checkpoints list shows them. Name it, or set one of the flags below."`
	LatestButOne bool   `help:"Go back to the last checkpoint but one."`
	BeforeTurn   string `help:"Go back to before this turn; sessions show lists the turns." placeholder:"TURN"`
	JSON         bool   `name:"json" help:"Print the session as JSON."`
	target
}

// Run goes back.
func (c rewindCommand) Run(ctx context.Context, s stdio) error {
	ways := 0
	for _, chosen := range []bool{c.Checkpoint != "", c.LatestButOne, c.BeforeTurn != ""} {
		if chosen {
			ways++
		}
	}
	if ways != 1 {
		return usage("name a checkpoint, or say --latest-but-one or --before-turn: one of them")
	}
	r := &sessionv1.RewindSessionRequest{Name: sessionName(c.ID), LatestButOne: c.LatestButOne, RequestId: id.New()}
	if c.BeforeTurn != "" {
		r.BeforeTurn = r.Name + "/turns/" + bare(c.BeforeTurn)
	}
	if c.Checkpoint != "" {
		r.Checkpoint = r.Name + "/checkpoints/" + bare(c.Checkpoint)
	}
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		var resp *sessionv1.RewindSessionResponse
		err := retry(ctx, func() (err error) {
			resp, err = b.points.RewindSession(ctx, r)
			return err
		})
		if err != nil {
			return terminal.Explained(err)
		}
		if c.JSON {
			return writeJSON(s.out, resp.GetSession())
		}
		_, err = fmt.Fprintln(s.out, bare(cmp.Or(resp.GetCheckpoint(), r.GetBeforeTurn())))
		return err
	})
}
