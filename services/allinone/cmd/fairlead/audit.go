package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/allinone/internal/terminal"
	"github.com/fairlead/fairlead/services/internal/kit/audit"
)

// auditCommand is about the audit log of a tenant.
type auditCommand struct {
	Export auditExportCommand `cmd:"" help:"Write the whole log, one JSON entry per line."`
	Verify auditVerifyCommand `cmd:"" help:"Check that no entry was changed, removed or moved."`
}

type auditExportCommand struct {
	target
}

// Run writes the log to standard output.
func (c auditExportCommand) Run(ctx context.Context, s stdio) error {
	return c.with(ctx, s, func(ctx context.Context, b *backend) error {
		return b.auditLog(ctx, func(e *sessionv1.AuditEntry) error { return writeJSON(s.out, e) })
	})
}

// auditLog reads the whole log.
func (b *backend) auditLog(ctx context.Context, each func(*sessionv1.AuditEntry) error) error {
	log := sessionv1.NewAuditServiceClient(b.conn)
	for token := ""; ; {
		resp, err := log.ListAuditEntries(ctx, &sessionv1.ListAuditEntriesRequest{PageSize: 1000, PageToken: token})
		if err != nil {
			return terminal.Explained(err)
		}
		for _, e := range resp.GetEntries() {
			if err := each(e); err != nil {
				return err
			}
		}
		if token = resp.GetNextPageToken(); token == "" {
			return nil
		}
	}
}

type auditVerifyCommand struct {
	File   string `arg:"" optional:"" help:"An exported log, or - for standard input. Without it, the log of the server."`
	Expect string `placeholder:"SEQ:HASH" help:"An entry that an earlier check has printed. The log must still have it: this finds a removed end."`
	target
}

// Run checks the chain of hashes, and prints its end for a later check.
func (c auditVerifyCommand) Run(ctx context.Context, s stdio) error {
	v := &verifier{}
	if err := v.expect(c.Expect); err != nil {
		return err
	}
	err := c.read(ctx, s, v)
	if err == nil {
		err = v.end()
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "The audit log of %s is whole: %d entries. Keep its end for a later check:\n\n  --expect %d:%s\n",
		v.chain.Tenant, v.chain.Seq, v.chain.Seq, hex.EncodeToString(v.chain.Hash))
	return err
}

func (c auditVerifyCommand) read(ctx context.Context, s stdio, v *verifier) error {
	switch c.File {
	case "":
		return c.with(ctx, s, func(ctx context.Context, b *backend) error { return b.auditLog(ctx, v.add) })
	case "-":
		return v.lines(s.in)
	}
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	return errors.Join(v.lines(file), file.Close())
}

// verifier checks a log.
type verifier struct {
	chain  audit.Chain
	seq    int64 // of the expected entry; 0: none
	hash   []byte
	seenIt bool
}

// expect reads the value of --expect.
func (v *verifier) expect(text string) (err error) {
	if text == "" {
		return nil
	}
	seq, hash, _ := strings.Cut(text, ":")
	v.seq, err = strconv.ParseInt(seq, 10, 64)
	if err == nil {
		v.hash, err = hex.DecodeString(hash)
	}
	if err != nil || v.seq < 1 || len(v.hash) != 32 {
		return usage("--expect %q is not of the form SEQ:HASH, as fairlead audit verify prints it", text)
	}
	return nil
}

// lines checks an exported log.
func (v *verifier) lines(r io.Reader) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for n := 1; scanner.Scan(); n++ {
		e := &sessionv1.AuditEntry{}
		if err := protojson.Unmarshal(scanner.Bytes(), e); err != nil {
			return fmt.Errorf("line %d is not an entry of an audit log: %w", n, err)
		}
		if err := v.add(e); err != nil {
			return err
		}
	}
	return scanner.Err()
}

// add checks the next entry.
func (v *verifier) add(e *sessionv1.AuditEntry) error {
	err := v.chain.Add(audit.Entry{
		Tenant: e.GetTenant(), Seq: e.GetSeq(), Time: e.GetTime().AsTime(), User: strings.TrimPrefix(e.GetUser(), "users/"), Credential: e.GetCredential(),
		Client: e.GetClient(), Method: e.GetMethod(), Resource: e.GetResource(), RequestID: e.GetRequestId(), Code: e.GetCode(), Reason: e.GetReason(), Hash: e.GetHash(),
	})
	if err != nil {
		return fmt.Errorf("the audit log is not whole: %w", err)
	}
	if e.GetSeq() == v.seq {
		v.seenIt = bytes.Equal(e.GetHash(), v.hash)
	}
	return nil
}

// end checks what can be known only at the end.
func (v *verifier) end() error {
	switch {
	case v.seq > 0 && v.chain.Seq < v.seq:
		return fmt.Errorf("the audit log is not whole: it ends at entry %d, and had entry %d before", v.chain.Seq, v.seq)
	case v.seq > 0 && !v.seenIt:
		return fmt.Errorf("the audit log is not whole: entry %d is another one than before", v.seq)
	}
	return nil
}
