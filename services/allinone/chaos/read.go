package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/internal/kit/principal"

	"github.com/fairlead/fairlead/services/allinone/chaos/internal/cluster"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/load"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/record"
	"github.com/fairlead/fairlead/services/allinone/chaos/internal/script"
)

// reader reads the final state.
type reader struct {
	cluster  *cluster.Cluster
	load     *load.Load
	conns    []*grpc.ClientConn
	replicas []sessionv1.SessionServiceClient
}

func newReader(c *cluster.Cluster, l *load.Load) (*reader, error) {
	r := &reader{cluster: c, load: l}
	for _, a := range c.Peers(record.SessionService) {
		conn, err := grpc.NewClient(a, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithUnaryInterceptor(c.Keys.UnaryClient(nil)), grpc.WithStreamInterceptor(c.Keys.StreamClient(nil)))
		if err != nil {
			r.close()
			return nil, err
		}
		r.conns = append(r.conns, conn)
		r.replicas = append(r.replicas, sessionv1.NewSessionServiceClient(conn))
	}
	return r, nil
}

func (r *reader) close() {
	for _, c := range r.conns {
		_ = c.Close()
	}
}

// owner returns the principal that reads a session.
func owner(s *record.Session) principal.Principal {
	if s.Tenant == "" {
		return principal.Default()
	}
	return principal.Principal{Tenant: s.Tenant, User: s.User, Role: principal.RoleOperator}
}

// session completes the record of a session.
func (r *reader) session(ctx context.Context, s *record.Session) (err error) {
	ctx, cancel := context.WithTimeout(principal.With(ctx, owner(s)), time.Minute)
	defer cancel()
	if s.Log, err = r.quiet(ctx, s.Name); err != nil {
		return err
	}
	if s.Again, err = events(ctx, r.replicas[1], s.Name); err != nil {
		return err
	}
	if err := r.conversation(ctx, s); err != nil {
		return err
	}
	if s.Children, err = r.children(ctx, s); err != nil {
		return err
	}
	if s.Tree, err = tree(ctx, r.replicas[0], s.Name); err != nil {
		return err
	}
	for call, o := range s.Operations {
		if o.End, err = r.load.Operation(ctx, s, 0, call); err != nil {
			return err
		}
		if o.Again, err = r.load.Operation(ctx, s, 1, call); err != nil {
			return err
		}
	}
	s.Effects, err = r.cluster.Effects(owner(s).Tenant, strings.TrimPrefix(s.Name, "sessions/"), script.Effects)
	return err
}

// children reads the sessions of a session's subagents, and of theirs.
func (r *reader) children(ctx context.Context, s *record.Session) (all []*record.Session, err error) {
	found, err := pages(func(token string) ([]*sessionv1.Session, string, error) {
		resp, err := r.replicas[0].ListSessions(ctx, &sessionv1.ListSessionsRequest{Parent: s.Name, PageSize: 1000, PageToken: token})
		return resp.GetSessions(), resp.GetNextPageToken(), err
	})
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		c := &record.Session{Name: f.GetName(), Tenant: s.Tenant, User: s.User, Call: f.GetParentCall()}
		if c.Log, err = events(ctx, r.replicas[1], c.Name); err != nil {
			return nil, err
		}
		if err := r.conversation(ctx, c); err != nil {
			return nil, err
		}
		if c.Children, err = r.children(ctx, c); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// conversation reads a session's turns and messages.
func (r *reader) conversation(ctx context.Context, s *record.Session) (err error) {
	s.Turns, err = pages(func(token string) ([]*sessionv1.Turn, string, error) {
		resp, err := r.replicas[0].ListTurns(ctx, &sessionv1.ListTurnsRequest{Parent: s.Name, PageSize: 1000, PageToken: token})
		return resp.GetTurns(), resp.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	s.Messages, err = pages(func(token string) ([]*sessionv1.Message, string, error) {
		resp, err := r.replicas[1].ListMessages(ctx, &sessionv1.ListMessagesRequest{Parent: s.Name, PageSize: 1000, PageToken: token})
		return resp.GetMessages(), resp.GetNextPageToken(), err
	})
	return err
}

// quiet reads the log once all turns in it have ended, or when ctx is about to end: a schedule may have sent
// a turn at the moment when it was stopped.
func (r *reader) quiet(ctx context.Context, session string) ([]*sessionv1.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		log, err := events(ctx, r.replicas[0], session)
		if err != nil {
			return nil, err
		}
		open := 0
		for _, e := range log {
			if e.GetTurnQueued() != nil {
				open++
			}
			if e.GetTurnFinished() != nil {
				open--
			}
		}
		if open == 0 {
			return log, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return log, nil
		}
	}
}

// tree reads all messages of a session, including those that were left behind, from an
// export.
func tree(ctx context.Context, c sessionv1.SessionServiceClient, session string) ([]*sessionv1.Message, error) {
	stream, err := c.ExportSession(ctx, &sessionv1.ExportSessionRequest{Name: session, Format: sessionv1.ExportFormat_EXPORT_FORMAT_JSONL})
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		file.Write(piece.GetData())
	}
	var all []*sessionv1.Message
	for line := range bytes.Lines(file.Bytes()) {
		var object struct{ Message json.RawMessage }
		if err := json.Unmarshal(line, &object); err != nil {
			return nil, fmt.Errorf("an undecodable line of an export: %w", err)
		}
		if object.Message == nil {
			continue
		}
		m := &sessionv1.Message{}
		if err := protojson.Unmarshal(object.Message, m); err != nil {
			return nil, fmt.Errorf("an undecodable message of an export: %w", err)
		}
		all = append(all, m)
	}
	return all, nil
}

func events(ctx context.Context, c sessionv1.SessionServiceClient, session string) ([]*sessionv1.Event, error) {
	return pages(func(token string) ([]*sessionv1.Event, string, error) {
		resp, err := c.ListEvents(ctx, &sessionv1.ListEventsRequest{Parent: session, PageSize: 1000, PageToken: token})
		return resp.GetEvents(), resp.GetNextPageToken(), err
	})
}

// pages reads a list to its end.
func pages[T any](read func(token string) ([]T, string, error)) ([]T, error) {
	var all []T
	for token := ""; ; {
		some, next, err := read(token)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if next == "" {
			return all, nil
		}
		token = next
	}
}
