package server

import (
	"context"
	"encoding/json"
	"errors"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/filename"
	"github.com/fairlead/fairlead/services/sandbox/internal/box"
	"github.com/fairlead/fairlead/services/sandbox/internal/files"
	"github.com/fairlead/fairlead/services/sandbox/internal/snapshot"
)

// renameIntent is the journaled data of a change that takes effect in one step.
type renameIntent struct {
	Step   files.RenameStep `json:"step"`
	Answer []byte           `json:"answer,omitempty"`
}

// journalRename journals a step that is about to be taken, and the answer.
func journalRename(p files.RenameStep, answer proto.Message, intend func([]byte) error) error {
	p.From, p.To = filename.Encode(p.From), filename.Encode(p.To) // a name may be invalid text
	n := renameIntent{Step: p}
	var err error
	if answer != nil {
		if n.Answer, err = proto.Marshal(answer); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return intend(raw)
}

// readRename decodes what journalRename journaled.
func readRename(raw []byte) (n renameIntent, err error) {
	err = json.Unmarshal(raw, &n)
	n.Step.From, n.Step.To = filename.Decode(n.Step.From), filename.Decode(n.Step.To)
	return n, err
}

// described are the answers that describe a file's final state.
var described = map[string]func() proto.Message{
	"write":  func() proto.Message { return &sandboxv1.WriteFileResponse{} },
	"edit":   func() proto.Message { return &sandboxv1.EditFileResponse{} },
	"move":   func() proto.Message { return &sandboxv1.MoveFileResponse{} },
	"unpack": func() proto.Message { return &sandboxv1.UnpackFilesResponse{} },
}

// Recover implements box.Upkeep.Recover. The file of a step shows whether the step was taken. A snapshot
// exists or not. A change of many steps is finished, unless something else was begun since.
func Recover(w *box.Workspace, i box.Interrupted) ([]byte, box.Fate) {
	switch i.Method {
	case "snapshot", "restore", "prune":
		return recoverKept(w, i)
	}
	t, err := openSpaceFor(i.User, w)
	if err != nil {
		return nil, box.Unknown
	}
	defer func() { _ = t.Close() }()
	n, err := readRename(i.Intent)
	if err != nil {
		return nil, box.Unknown
	}
	switch taken, known := t.Taken(n.Step, i.SameBoot); {
	case !known:
		return nil, box.Unknown
	case !taken:
		if (i.Method == "write" || i.Method == "edit") && !n.Step.Staged {
			_ = t.Remove(n.Step.From, false, nil) // the draft in a mount
		}
		return nil, box.Undone
	}
	if empty := described[i.Method]; empty != nil {
		n.Answer = describe(t, n, empty())
	}
	return n.Answer, box.Done
}

// describe adds the file's current state to an answer, if the file is where it was put.
func describe(t *space, n renameIntent, resp proto.Message) []byte {
	info, err := t.Stat(n.Step.To)
	if err != nil || proto.Unmarshal(n.Answer, resp) != nil {
		return n.Answer
	}
	if m, err := t.Mark(n.Step.To, false); err != nil || m != n.Step.File {
		return n.Answer
	}
	r := resp.ProtoReflect()
	r.Set(r.Descriptor().Fields().ByName("file"), protoreflect.ValueOfMessage(fileInfo(info).ProtoReflect()))
	if raw, err := proto.Marshal(resp); err == nil {
		return raw
	}
	return n.Answer
}

// recoverKept is Recover for changes that involve snapshots.
func recoverKept(w *box.Workspace, i box.Interrupted) ([]byte, box.Fate) {
	k, err := openKept(w)
	if err != nil {
		return nil, box.Unknown
	}
	defer k.close()
	var did proto.Message
	switch i.Method {
	case "snapshot":
		made, bad := k.store.Recover(snapshotID(i.ID), i.Intent)
		if errors.Is(bad, snapshot.ErrNotFound) {
			return nil, box.Undone
		}
		did, err = &sandboxv1.CreateSnapshotResponse{Snapshot: snapshotMessage(made)}, bad
	case "restore":
		var id string
		if !i.Last || json.Unmarshal(i.Intent, &id) != nil {
			return nil, box.Unknown
		}
		if err = k.avoid(i.User); err == nil {
			did, err = restore(context.Background(), k, id)
		}
	case "prune":
		var ids []string
		if json.Unmarshal(i.Intent, &ids) != nil {
			return nil, box.Unknown
		}
		did, err = removeAll(k, ids)
	}
	if err != nil {
		return nil, box.Unknown
	}
	raw, err := proto.Marshal(did)
	if err != nil {
		return nil, box.Unknown
	}
	return raw, box.Done
}
