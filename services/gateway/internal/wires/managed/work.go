package managed

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/headers"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// workServer serves the work queues of self-hosted environments.
type workServer struct {
	*environmentsServer
	queues sessionv1.WorkServiceClient
}

const (
	workPrefix = "work_"
	// reclaimAfter is when an item that was not acknowledged is given out again, unless the worker says otherwise.
	reclaimAfter = 5 * time.Second
	// lease is how long a heartbeat keeps an item, unless the worker says otherwise.
	lease = 30 * time.Second
	// lookAgain is the pause between two looks into a queue for a poll that waits.
	lookAgain = 200 * time.Millisecond
	// noHeartbeat is what a worker expects before its first heartbeat.
	noHeartbeat = "NO_HEARTBEAT"
)

// queue returns the queue of a request, which must be of a self-hosted environment.
func (s *workServer) queue(c *request) (*sessionv1.WorkQueue, error) {
	e, err := s.environment(c)
	if err != nil {
		return nil, err
	}
	if !isHosted(e) {
		return nil, resource.Bad("environment_id", "the environment is not self_hosted, so it has no work queue")
	}
	return s.queueOf(c, wire.LastPart(e.GetName())), nil
}

func (s *workServer) queueOf(c *request, environment string) *sessionv1.WorkQueue {
	q := &sessionv1.WorkQueue{Environment: environment}
	if !c.caller.Sees("") { // an operator sees the sessions of all users
		q.User = c.caller.User
	}
	return q
}

// number reads a number of milliseconds or seconds in the query.
func (c *request) number(name string, least, most, otherwise int64) (int64, error) {
	text := c.R.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, resource.Bad(name, fmt.Sprintf("%s is not a number from %d to %d", problem.Excerpt(text), least, most))
	}
	return n, nil
}

// poll gives out a work item. A poll that waits looks again until its time is over.
func (s *workServer) poll(c *request) (any, error) {
	block, err := c.number("block_ms", 1, 999, 0)
	if err != nil {
		return nil, err
	}
	reclaim, err := c.number("reclaim_older_than_ms", 0, 86_400_000, reclaimAfter.Milliseconds())
	if err != nil {
		return nil, err
	}
	worker := c.R.Header.Get("Anthropic-Worker-ID")
	if len(worker) > 256 || !utf8.ValidString(worker) {
		return nil, resource.Bad("Anthropic-Worker-ID", "it has more than 256 bytes, or is not UTF-8")
	}
	q, err := s.queue(c)
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(time.Duration(block) * time.Millisecond)
	for {
		ctx, cancel := s.service(c)
		got, err := s.queues.PollWork(ctx, &sessionv1.PollWorkRequest{Queue: q, Worker: worker, Reclaim: durationpb.New(time.Duration(reclaim) * time.Millisecond)})
		cancel()
		if err != nil || got.GetWork() != nil {
			return workJSON(q, got.GetWork()), err
		}
		wait := time.NewTimer(min(lookAgain, max(0, time.Until(end))))
		select {
		case <-c.R.Context().Done():
			wait.Stop()
			return nil, c.R.Context().Err()
		case <-wait.C:
		}
		if !time.Now().Before(end) {
			return json.RawMessage("null"), nil // the official clients take a body of another type for text
		}
	}
}

// workJSON returns a work item as the wire has it.
func workJSON(q *sessionv1.WorkQueue, w *sessionv1.Work) map[string]any {
	at := func(t *timestamppb.Timestamp) any {
		if t == nil {
			return nil
		}
		return stamp(t.AsTime())
	}
	kept := map[string]string{}
	_ = json.Unmarshal([]byte(w.GetMetadataJson()), &kept) // an item without metadata has none
	session := wire.LastPart(w.GetSession())
	return map[string]any{
		"id": workPrefix + session + "_" + strconv.FormatInt(w.GetNumber(), 10), "type": "work", "environment_id": environmentPrefix + q.GetEnvironment(),
		"data": map[string]any{"type": "session", "id": sessionPrefix + session}, "state": w.GetState(), "metadata": kept, "secret": nil,
		"created_at": at(w.GetCreateTime()), "acknowledged_at": at(w.GetAcknowledgeTime()), "started_at": at(w.GetStartTime()), "latest_heartbeat_at": at(w.GetHeartbeatTime()),
		"stop_requested_at": at(w.GetStopRequestTime()), "stopped_at": at(w.GetStopTime()),
	}
}

var workID = regexp.MustCompile(`^work_([a-z0-9][a-z0-9-]{0,62})_([0-9]{1,18})$`)

// change changes the work item of a request, or reads it.
func (s *workServer) change(c *request, r *sessionv1.ChangeWorkRequest) (*sessionv1.ChangeWorkResponse, error) {
	found := workID.FindStringSubmatch(c.ID[1])
	if found == nil {
		return nil, resource.None("work item", c.ID[1])
	}
	r.Queue, r.Session = s.queueOf(c, wire.LastPart(environmentName(c.ID[0]))), "sessions/"+found[1]
	r.Number, _ = strconv.ParseInt(found[2], 10, 64) // 18 digits fit
	ctx, cancel := s.service(c)
	defer cancel()
	got, err := s.queues.ChangeWork(ctx, r)
	if err == nil && got.GetWork() == nil {
		err = resource.None("work item", c.ID[1])
	}
	return got, err
}

func (s *workServer) getWork(c *request) (any, error) {
	r := &sessionv1.ChangeWorkRequest{}
	got, err := s.change(c, r)
	return shownWork(r, got, err)
}

func shownWork(r *sessionv1.ChangeWorkRequest, got *sessionv1.ChangeWorkResponse, err error) (any, error) {
	switch {
	case err != nil:
		return nil, err
	case got.GetRefused():
		return nil, apierr.New(codes.Aborted, problem.Domain, resource.ReasonBadField, "the work item has stopped already")
	}
	return workJSON(r.GetQueue(), got.GetWork()), nil
}

func (s *workServer) acknowledge(c *request) (any, error) {
	r := &sessionv1.ChangeWorkRequest{Change: &sessionv1.ChangeWorkRequest_Acknowledge_{Acknowledge: &sessionv1.ChangeWorkRequest_Acknowledge{}}}
	got, err := s.change(c, r)
	return shownWork(r, got, err)
}

func (s *workServer) stopWork(c *request) (any, error) {
	var in struct {
		Force bool `json:"force"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	r := &sessionv1.ChangeWorkRequest{Change: &sessionv1.ChangeWorkRequest_Stop_{Stop: &sessionv1.ChangeWorkRequest_Stop{Force: in.Force}}}
	got, err := s.change(c, r)
	return shownWork(r, got, err)
}

func (s *workServer) updateWork(c *request) (any, error) {
	var in struct {
		Metadata metadata `json:"metadata"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.Metadata == nil {
		return nil, resource.Bad("metadata", "it is required")
	}
	got, err := s.change(c, &sessionv1.ChangeWorkRequest{})
	if err != nil {
		return nil, err
	}
	before := map[string]string{}
	_ = json.Unmarshal([]byte(got.GetWork().GetMetadataJson()), &before) // an item without metadata has none
	all, err := in.Metadata.merged(before)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	r := &sessionv1.ChangeWorkRequest{Change: &sessionv1.ChangeWorkRequest_MetadataJson{MetadataJson: string(text)}}
	got, err = s.change(c, r)
	return shownWork(r, got, err)
}

// heartbeat keeps a work item. The heartbeat before names the worker that has it.
func (s *workServer) heartbeat(c *request) (any, error) {
	ttl, err := c.number("desired_ttl_seconds", 1, 86_400, int64(lease.Seconds()))
	if err != nil {
		return nil, err
	}
	h := &sessionv1.ChangeWorkRequest_Heartbeat{Ttl: durationpb.New(time.Duration(ttl) * time.Second)}
	expected := c.R.URL.Query().Get("expected_last_heartbeat")
	if expected == "" {
		return nil, resource.Bad("expected_last_heartbeat", "it is required: "+noHeartbeat+", or the last_heartbeat of the answer before")
	}
	if expected != noHeartbeat {
		h.Expected = timestamppb.New(time.Unix(0, 0)) // no item has this one
		if at, err := time.Parse(time.RFC3339Nano, expected); err == nil {
			h.Expected = timestamppb.New(at)
		}
	}
	got, err := s.change(c, &sessionv1.ChangeWorkRequest{Change: &sessionv1.ChangeWorkRequest_Heartbeat_{Heartbeat: h}})
	if err != nil {
		return nil, err
	}
	w := got.GetWork()
	state := map[string]any{"state": w.GetState(), "lease_extended": false, "ttl_seconds": int64(w.GetTtl().AsDuration().Seconds()), "last_heartbeat": ""}
	if w.HeartbeatTime != nil {
		state["last_heartbeat"] = stamp(w.HeartbeatTime.AsTime())
	}
	if got.GetRefused() {
		return nil, lostLease(c, state)
	}
	state["type"], state["lease_extended"] = "work_heartbeat", w.GetState() == "active"
	return state, nil
}

// lostLease answers a worker that has not the item, with the state that its helper reads.
func lostLease(c *request, state map[string]any) error {
	id := c.W.Header().Get(headers.RequestID)
	body, err := json.Marshal(map[string]any{"type": "error", "request_id": id, "error": map[string]any{
		"type": "invalid_request_error", "message": "another worker has the work item, or it is in the queue again: its last heartbeat is not the expected one",
		"details": map[string]any{"error_code": "heartbeat_precondition_failed", "current_state": state},
	}})
	if err != nil {
		return err
	}
	c.W.Header().Set("Content-Type", "application/json")
	c.W.WriteHeader(http.StatusPreconditionFailed)
	_, _ = c.W.Write(body) // an error here means that the client has gone
	return nil
}

func (s *workServer) listWork(c *request) (any, error) {
	l, err := c.list(20, 100, true)
	if err != nil {
		return nil, err
	}
	q, err := s.queue(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.service(c)
	defer cancel()
	got, err := s.queues.ListWork(ctx, &sessionv1.ListWorkRequest{Queue: q, PageSize: int32(l.limit), After: strings.TrimPrefix(l.page, sessionPrefix)})
	if err != nil {
		return nil, err
	}
	var data []any
	next := ""
	for i, w := range got.GetWork() {
		if data = append(data, workJSON(q, w)); i+1 == l.limit {
			next = sessionPrefix + wire.LastPart(w.GetSession())
		}
	}
	return page(data, next), nil
}

func (s *workServer) stats(c *request) (any, error) {
	q, err := s.queue(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.service(c)
	defer cancel()
	n, err := s.queues.GetWorkStats(ctx, &sessionv1.GetWorkStatsRequest{Queue: q})
	if err != nil {
		return nil, err
	}
	out := map[string]any{"type": "work_queue_stats", "depth": n.GetDepth(), "pending": n.GetPending(), "oldest_queued_at": nil, "workers_polling": nil}
	if n.OldestTime != nil {
		out["oldest_queued_at"] = stamp(n.OldestTime.AsTime())
	}
	return out, nil
}
