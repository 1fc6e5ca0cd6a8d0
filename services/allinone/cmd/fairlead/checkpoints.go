package main

import (
	"cmp"
	"fmt"

	"google.golang.org/protobuf/proto"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// checkpointsCommand makes and lists points to go back to.
type checkpointsCommand struct {
	Create shows[createCheckpoint, *sessionv1.Checkpoint] `cmd:"" help:"Make a checkpoint of a session: its conversation and its files."`
	List   lists[listCheckpoints, *sessionv1.Checkpoint]  `cmd:"" help:"List a session's checkpoints, the last one first."`
}

type createCheckpoint struct {
	Session     string `arg:"" help:"The session."`
	Description string `arg:"" optional:"" help:"A description of the checkpoint."`
	jsonOne
}

func (f createCheckpoint) request() proto.Message {
	return &sessionv1.CreateCheckpointRequest{Parent: sessionName(f.Session), Checkpoint: &sessionv1.Checkpoint{Description: f.Description}}
}

func (createCheckpoint) show(s stdio, made *sessionv1.Checkpoint) error {
	_, err := fmt.Fprintln(s.out, bare(made.GetName()))
	return err
}

type listCheckpoints struct {
	Session string `arg:"" help:"The session."`
	jsonList
}

func (f listCheckpoints) request() proto.Message {
	return &sessionv1.ListCheckpointsRequest{Parent: sessionName(f.Session)}
}

func (listCheckpoints) row(c *sessionv1.Checkpoint) [][]string {
	by := "request"
	if c.GetAutomatic() {
		by = "itself"
	}
	return [][]string{{"CHECKPOINT", bare(c.GetName())}, {"MADE", stamp(c.GetCreateTime())}, {"BY", by}, {"DESCRIPTION", c.GetDescription()}}
}

// rewind goes back.
type rewind struct {
	ID           string `arg:"" help:"The session."`
	Checkpoint   string `arg:"" optional:"" help:"The checkpoint; checkpoints list shows them. Name it, or set one of the flags below."`
	LatestButOne bool   `help:"Go back to the last checkpoint but one."`
	BeforeTurn   string `help:"Go back to before this turn; sessions show lists the turns." placeholder:"TURN"`
	JSON         bool   `name:"json" help:"Print the ${one} as JSON."`
}

func (f rewind) ready() error {
	ways := 0
	for _, chosen := range []bool{f.Checkpoint != "", f.LatestButOne, f.BeforeTurn != ""} {
		if chosen {
			ways++
		}
	}
	if ways != 1 {
		return usage("name a checkpoint, or say --latest-but-one or --before-turn: one of them")
	}
	return nil
}

func (f rewind) request() proto.Message {
	r := &sessionv1.RewindSessionRequest{Name: sessionName(f.ID), LatestButOne: f.LatestButOne}
	if f.BeforeTurn != "" {
		r.BeforeTurn = r.Name + "/turns/" + bare(f.BeforeTurn)
	}
	if f.Checkpoint != "" {
		r.Checkpoint = r.Name + "/checkpoints/" + bare(f.Checkpoint)
	}
	return r
}

func (f rewind) show(s stdio, resp *sessionv1.RewindSessionResponse) error {
	if f.JSON {
		return writeJSON(s.out, resp.GetSession())
	}
	_, err := fmt.Fprintln(s.out, bare(cmp.Or(resp.GetCheckpoint(), f.BeforeTurn)))
	return err
}
