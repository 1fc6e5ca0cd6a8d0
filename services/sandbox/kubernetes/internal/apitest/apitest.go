// Package apitest is an API server, with a simulated cluster, for tests of the driver `kubernetes`. It
// speaks the real protocol over TLS. It refuses what a cluster with Pod Security's level `restricted` and
// the role of deploy/k8s/pods refuses. It runs pods as containers of runc on this machine.
//
// It shows that the driver makes the right requests and handles the answers. It cannot show that a cluster
// enforces isolation: this package and runc isolate the containers, not a kubelet and its runtime.
package apitest

import (
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Namespace and Node are the cluster's only ones, and Claim is a claim in it.
const (
	Namespace = "fairlead"
	Node      = "node-a"
	Claim     = "data"
)

// Options of a Server.
type Options struct {
	// Volume is the folder of the claim's volume.
	Volume string
	// Claims are further claims, by name, and the folders of their volumes.
	Claims map[string]string
	// Role is a manifest with the client's Role; if empty, everything is allowed.
	Role string
}

// Faults are injected faults. They may be changed at any time through Server.Break.
type Faults struct {
	// Refuse answers requests with a status: nil lets them pass.
	Refuse func(verb, resource string) *metav1.Status
	// Unschedulable leaves pods without a node, for this reason.
	Unschedulable string
	// Delay is how long a pod waits for its node.
	Delay time.Duration
	// Waiting leaves pods waiting for their container, for this reason.
	Waiting string
	// HostNetwork makes pods share the machine's network, as without enforced policies.
	HostNetwork bool
	// HostUsers ignores hostUsers, like clusters that do not know it.
	HostUsers bool
	// Unbounded ignores the sizes of volumes in memory.
	Unbounded bool
	// Writable ignores that volumes should be read-only.
	Writable bool
	// NoExec refuses exec.
	NoExec bool
	// SlowProgram delays a container's program after the container is reported as running.
	SlowProgram bool
	// Reticent makes a node report how a container ended only when its pod is deleted.
	Reticent bool
}

// Server is the API server. It ends with its test.
type Server struct {
	t       testing.TB
	o       Options
	http    *httptest.Server
	token   string
	kubelet *kubelet
	allowed map[string]bool // verb and resource; nil: all
	work    sync.WaitGroup

	mu      sync.Mutex // guards what follows
	faults  Faults
	version int
	pods    map[string]*pod
	boxes   map[string]*Sandbox
	events  []event
	changed chan struct{} // closed and recreated for each event
	used    map[string]bool
	conns   map[*conn]string // open connections of exec, by pod
	closed  bool
}

// pod is a pod and its container.
type pod struct {
	corev1.Pod
	run  *running // nil: not started yet, or ended
	self bool     // the service's own pod, which is not run
}

type event struct {
	version int
	kind    string
	pod     corev1.Pod
}

// New starts a server.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	k, err := newKubelet(o)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		t: t, o: o, token: rand.Text(), kubelet: k, pods: map[string]*pod{}, boxes: map[string]*Sandbox{},
		changed: make(chan struct{}), used: map[string]bool{}, conns: map[*conn]string{},
	}
	if o.Role != "" {
		if s.allowed, err = readRole(o.Role); err != nil {
			t.Fatal(err)
		}
	}
	s.http = httptest.NewTLSServer(s.handler())
	t.Cleanup(s.close)
	return s
}

// Config returns the configuration of a connection to the server.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: s.http.URL, BearerToken: s.token, TLSClientConfig: rest.TLSClientConfig{CAData: s.certificate()}}
}

func (s *Server) certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
}

// Kubeconfig writes the same configuration to a file and returns its name.
func (s *Server) Kubeconfig(dir string) string {
	s.t.Helper()
	name := dir + "/kubeconfig"
	cert, err := json.Marshal(s.certificate()) // as base64 between quotes
	if err != nil {
		s.t.Fatal(err)
	}
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"clusters: [{name: c, cluster: {server: " + s.http.URL + ", certificate-authority-data: " + string(cert) + "}}]\n" +
		"users: [{name: u, user: {token: " + s.token + "}}]\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// Break changes the injected faults.
func (s *Server) Break(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Cut cuts all connections of exec without a message.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.cut()
	}
}

// Evict ends all pods for a reason, as a kubelet does, such as OOMKilled or Evicted.
func (s *Server) Evict(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pods {
		if p.run != nil {
			p.run.reason = reason
			p.run.kill()
		}
	}
}

// Pods returns all pods.
func (s *Server) Pods() []corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []corev1.Pod
	for _, p := range s.pods {
		all = append(all, *p.DeepCopy())
	}
	return all
}

// Sandboxes returns the names of all sandboxes.
func (s *Server) Sandboxes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for name := range s.boxes {
		all = append(all, name)
	}
	return all
}

// Unused returns the rights of the role that no request has needed.
func (s *Server) Unused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for right := range s.allowed {
		if !s.used[right] {
			all = append(all, right)
		}
	}
	return all
}

// AddSelf adds the pod of the service itself, which the server does not run.
func (s *Server) AddSelf(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(&pod{self: true, Pod: corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, UID: types.UID(rand.Text())},
		Spec:       corev1.PodSpec{NodeName: Node}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}}, "ADDED")
}

// Delete deletes a pod and what it owns, as another client would.
func (s *Server) Delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delete(name)
}

// store stores a pod's new state and notifies the watches. mu is held.
func (s *Server) store(p *pod, kind string) {
	s.version++
	p.ResourceVersion = strconv.Itoa(s.version)
	if kind == "DELETED" {
		delete(s.pods, p.Name)
	} else {
		s.pods[p.Name] = p
	}
	s.events = append(s.events, event{s.version, kind, *p.DeepCopy()})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) close() {
	s.mu.Lock()
	s.closed = true
	close(s.changed)
	s.changed = make(chan struct{})
	for name := range s.pods {
		s.delete(name)
	}
	for c := range s.conns {
		c.cut()
	}
	s.mu.Unlock()
	s.work.Wait()
	s.http.CloseClientConnections()
	s.http.Close()
	if err := s.kubelet.close(); err != nil {
		s.t.Error(err)
	}
}

func matches(selector string, labels map[string]string) bool {
	for _, one := range strings.Split(selector, ",") {
		if key, value, ok := strings.Cut(one, "="); ok && labels[key] != value {
			return false
		}
	}
	return true
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	answer(w, code, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // who went away hears nothing
}
