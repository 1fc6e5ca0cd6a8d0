package apitest

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"sync"

	"github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
)

// conn is a connection of exec: the first byte of a message is its channel.
type conn struct {
	ws *websocket.Conn
	mu sync.Mutex // of writing
}

func (c *conn) write(channel byte, b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ws.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, b...))
}

// cut drops the connection like a failing network.
func (c *conn) cut() { _ = c.ws.NetConn().Close() }

// channelWriter writes to a channel.
type channelWriter struct {
	c       *conn
	channel byte
}

func (w channelWriter) Write(b []byte) (int, error) {
	if err := w.c.write(w.channel, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (s *Server) exec(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	p, f, name := s.pods[r.PathValue("name")], s.faults, ""
	ready := p != nil && p.run != nil && p.DeletionTimestamp == nil
	if ready {
		name = p.Spec.Containers[0].Name
	}
	s.mu.Unlock()
	switch {
	case !ready:
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "container not found: the pod does not run")
		return
	case f.NoExec:
		fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "pods/exec is forbidden")
		return
	case q.Get("container") != name || q.Get("tty") == "true":
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "no such container")
		return
	}
	up := websocket.Upgrader{Subprotocols: []string{remotecommand.StreamProtocolV5Name}}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &conn{ws: ws}
	s.mu.Lock()
	s.conns[c] = p.Name
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		_ = ws.Close()
	}()
	status := s.execute(c, s.kubelet.runc(append([]string{"exec", p.Name}, q["command"]...)...))
	raw, err := json.Marshal(status)
	if err == nil && c.write(remotecommand.StreamErr, raw) == nil {
		c.mu.Lock()
		_ = ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		c.mu.Unlock()
	}
}

// execute runs a command at the other end of a connection. When the connection is cut, the command only
// sees the end of its input.
func (s *Server) execute(c *conn, cmd *exec.Cmd) *metav1.Status {
	cmd.Stdout, cmd.Stderr = channelWriter{c, remotecommand.StreamStdOut}, channelWriter{c, remotecommand.StreamStdErr}
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: err.Error()}
	}
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		defer func() { _ = in.Close() }()
		for {
			kind, m, err := c.ws.NextReader()
			if err != nil {
				return
			}
			var channel [1]byte
			if _, err := io.ReadFull(m, channel[:]); err != nil || kind != websocket.BinaryMessage {
				continue
			}
			switch channel[0] {
			case remotecommand.StreamStdIn:
				_, _ = io.Copy(in, m)
			case remotecommand.StreamClose:
				return
			}
		}
	}()
	if err := cmd.Wait(); err != nil {
		return &metav1.Status{Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason, Message: err.Error(), Details: &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(cmd.ProcessState.ExitCode())}},
		}}
	}
	return &metav1.Status{Status: metav1.StatusSuccess}
}
