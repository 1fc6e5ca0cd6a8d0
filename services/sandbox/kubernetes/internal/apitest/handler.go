package apitest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Sandbox is a Sandbox of agent-sandbox, v1beta1, with all fields of its schema.
type Sandbox struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		PodTemplate struct {
			Spec     corev1.PodSpec `json:"spec"`
			Metadata struct {
				Labels      map[string]string `json:"labels,omitempty"`
				Annotations map[string]string `json:"annotations,omitempty"`
			} `json:"metadata"`
		} `json:"podTemplate"`
		VolumeClaimTemplates []any        `json:"volumeClaimTemplates,omitempty"`
		Service              *bool        `json:"service,omitempty"`
		ShutdownTime         *metav1.Time `json:"shutdownTime,omitempty"`
		ShutdownPolicy       string       `json:"shutdownPolicy,omitempty"`
		OperatingMode        string       `json:"operatingMode,omitempty"`
	} `json:"spec"`
	Status map[string]any `json:"status,omitempty"`
}

// readRole returns what the Roles of a manifest allow.
func readRole(path string) (map[string]bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	all := map[string]bool{}
	for d := yaml.NewDecoder(f); ; {
		var object struct {
			Kind  string
			Rules []struct{ Resources, Verbs []string }
		}
		if err := d.Decode(&object); err == io.EOF { //nolint:errorlint // as it documents
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if object.Kind != "Role" {
			continue
		}
		for _, rule := range object.Rules {
			for _, r := range rule.Resources {
				for _, v := range rule.Verbs {
					all[v+" "+r] = true
				}
			}
		}
	}
}

// guard passes permitted requests on, unless a fault refuses them.
func (s *Server) guard(resource string, verbs []string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+s.token {
			fail(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
			return
		}
		need := verbs
		if r.URL.Query().Get("watch") == "true" {
			need = []string{"watch"}
		}
		s.mu.Lock()
		refuse := s.faults.Refuse
		denied := ""
		for _, v := range need {
			right := v + " " + resource
			s.used[right] = true
			if s.allowed != nil && !s.allowed[right] {
				denied = right
			}
		}
		s.mu.Unlock()
		if denied != "" || r.PathValue("namespace") != Namespace {
			fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "forbidden: User cannot "+denied+" in the namespace "+r.PathValue("namespace"))
			return
		}
		if refuse != nil {
			if st := refuse(need[0], resource); st != nil {
				fail(w, int(st.Code), st.Reason, st.Message)
				return
			}
		}
		h(w, r)
	}
}

func (s *Server) handler() http.Handler {
	m := http.NewServeMux()
	const core, agents = "/api/v1/namespaces/{namespace}/pods", "/apis/agents.x-k8s.io/v1beta1/namespaces/{namespace}/sandboxes"
	m.HandleFunc("POST "+core, s.guard("pods", []string{"create"}, s.createPod))
	m.HandleFunc("GET "+core, s.guard("pods", []string{"list"}, s.listPods))
	m.HandleFunc("GET "+core+"/{name}", s.guard("pods", []string{"get"}, s.getPod))
	m.HandleFunc("DELETE "+core+"/{name}", s.guard("pods", []string{"delete"}, s.deletePod))
	m.HandleFunc("GET "+core+"/{name}/exec", s.guard("pods/exec", []string{"get", "create"}, s.exec))
	m.HandleFunc("POST "+agents, s.guard("sandboxes", []string{"create"}, s.createSandbox))
	m.HandleFunc("GET "+agents, s.guard("sandboxes", []string{"list"}, s.listSandboxes))
	m.HandleFunc("DELETE "+agents+"/{name}", s.guard("sandboxes", []string{"delete"}, s.deleteSandbox))
	return m
}

// strict decodes an object like a server with strict validation.
func strict(r *http.Request, into any) error {
	raw, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func (s *Server) createPod(w http.ResponseWriter, r *http.Request) {
	var p corev1.Pod
	if err := strict(r, &p); err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "strict decoding error: "+err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.admit(&p); st != nil {
		fail(w, int(st.Code), st.Reason, st.Message)
		return
	}
	made := s.add(&p)
	answer(w, http.StatusCreated, made)
}

// add adds an admitted pod. mu is held.
func (s *Server) add(p *corev1.Pod) *corev1.Pod {
	p.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	p.UID, p.CreationTimestamp = types.UID(rand.Text()), metav1.Now()
	p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	made := &pod{Pod: *p}
	s.store(made, "ADDED")
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		s.live(made)
	}()
	return made.DeepCopy()
}

func (s *Server) listPods(w http.ResponseWriter, r *http.Request) {
	selector := r.URL.Query().Get("labelSelector")
	if r.URL.Query().Get("watch") == "true" {
		s.watch(w, r, selector)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
	for _, p := range s.pods {
		if matches(selector, p.Labels) {
			l.Items = append(l.Items, *p.DeepCopy())
		}
	}
	answer(w, http.StatusOK, &l)
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request, selector string) {
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := w.(http.Flusher).Flush
	flush()
	for {
		s.mu.Lock()
		var news []event
		for _, e := range s.events {
			if e.version > since && matches(selector, e.pod.Labels) {
				news = append(news, e)
			}
		}
		since = s.version
		changed, closed := s.changed, s.closed
		s.mu.Unlock()
		for _, e := range news {
			if json.NewEncoder(w).Encode(map[string]any{"type": e.kind, "object": &e.pod}) != nil { //nolint:errchkjson // who went away hears nothing
				return
			}
		}
		flush()
		if closed {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) getPod(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pods[r.PathValue("name")]; p != nil {
		answer(w, http.StatusOK, p.DeepCopy())
		return
	}
	notFound(w, r)
}

func notFound(w http.ResponseWriter, r *http.Request) {
	fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%q not found", r.PathValue("name")))
}

func (s *Server) deletePod(w http.ResponseWriter, r *http.Request) {
	var o metav1.DeleteOptions
	if err := strict(r, &o); err != nil && err != io.EOF { //nolint:errorlint // an empty body
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[r.PathValue("name")]
	if p == nil {
		notFound(w, r)
		return
	}
	if o.GracePeriodSeconds != nil && *o.GracePeriodSeconds == 0 {
		s.t.Error("a pod is to be forgotten before it has ended")
	}
	s.delete(p.Name)
	answer(w, http.StatusOK, p.DeepCopy())
}

// delete begins the end of a pod and of the objects that it owns. mu is held.
func (s *Server) delete(name string) {
	p := s.pods[name]
	if p == nil || p.DeletionTimestamp != nil {
		return
	}
	now := metav1.NewTime(time.Now())
	p.DeletionTimestamp = &now
	if p.self {
		s.store(p, "DELETED")
	} else {
		s.store(p, "MODIFIED")
		if p.run != nil {
			p.run.terminate()
		}
	}
	s.collect(p.UID)
}

// collect deletes the objects of an owner. mu is held.
func (s *Server) collect(owner types.UID) {
	for name, p := range s.pods {
		for _, o := range p.OwnerReferences {
			if o.UID == owner {
				s.delete(name)
			}
		}
	}
	for name, b := range s.boxes {
		for _, o := range b.OwnerReferences {
			if o.UID == owner {
				delete(s.boxes, name)
				s.collect(b.UID)
			}
		}
	}
}

func (s *Server) createSandbox(w http.ResponseWriter, r *http.Request) {
	var b Sandbox
	if err := strict(r, &b); err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "strict decoding error: "+err.Error())
		return
	}
	if b.Kind != "Sandbox" || b.APIVersion != "agents.x-k8s.io/v1beta1" || b.Spec.OperatingMode != "Running" || b.Spec.ShutdownPolicy != "Delete" {
		fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "not a Sandbox that runs and is deleted")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b.UID = types.UID(rand.Text())
	// Like its controller: make a pod of the same name that it owns.
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: b.Name, Namespace: b.Namespace, Labels: b.Spec.PodTemplate.Metadata.Labels, Annotations: b.Spec.PodTemplate.Metadata.Annotations,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: b.APIVersion, Kind: b.Kind, Name: b.Name, UID: b.UID}},
	}, Spec: b.Spec.PodTemplate.Spec}
	if st := s.admit(&p); st != nil {
		fail(w, int(st.Code), st.Reason, st.Message)
		return
	}
	s.boxes[b.Name] = &b
	s.add(&p)
	answer(w, http.StatusCreated, &b)
}

func (s *Server) listSandboxes(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []*Sandbox{}
	for _, b := range s.boxes {
		if matches(r.URL.Query().Get("labelSelector"), b.Labels) {
			items = append(items, b)
		}
	}
	answer(w, http.StatusOK, map[string]any{"kind": "SandboxList", "apiVersion": "agents.x-k8s.io/v1beta1", "items": items})
}

func (s *Server) deleteSandbox(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.boxes[r.PathValue("name")]
	if b == nil {
		notFound(w, r)
		return
	}
	delete(s.boxes, b.Name)
	s.collect(b.UID)
	answer(w, http.StatusOK, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
}
