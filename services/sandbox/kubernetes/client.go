package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// client talks to the API server about pods and the objects that make pods. It knows only the types that it
// needs, because the full set is large.
type client struct {
	rest      *rest.RESTClient
	config    *rest.Config
	namespace string
}

// retryPause is how long an interrupted watch pauses.
const retryPause = 250 * time.Millisecond

func newClient(c *rest.Config, namespace string) (*client, error) {
	c = rest.CopyConfig(c)
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // for the server's errors
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.UserAgent = "fairlead-sandbox"
	c.QPS, c.Burst = 100, 200
	r, err := rest.UnversionedRESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("set up the client of the API server: %w", err)
	}
	return &client{rest: r, config: c, namespace: namespace}, nil
}

// objects are the objects of one kind in the namespace.
type objects struct{ group, name string }

var pods = objects{"/api/v1", "pods"}

func (c *client) path(r objects, more ...string) string {
	return strings.Join(append([]string{r.group, "namespaces", c.namespace, r.name}, more...), "/")
}

func (c *client) create(ctx context.Context, r objects, object, into any) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return decode(c.rest.Post().AbsPath(c.path(r)).SetHeader("Content-Type", "application/json").Param("fieldValidation", "Strict").Body(raw).Do(ctx), into)
}

func (c *client) get(ctx context.Context, r objects, name string, into any) error {
	return decode(c.rest.Get().AbsPath(c.path(r, name)).Do(ctx), into)
}

func (c *client) list(ctx context.Context, r objects, selector string, into any) error {
	return decode(c.rest.Get().AbsPath(c.path(r)).Param("labelSelector", selector).Do(ctx), into)
}

// remove deletes an object; a missing one is no error. It gives pods time to end: otherwise they would be
// forgotten while their processes still run.
func (c *client) remove(ctx context.Context, r objects, name string) error {
	policy := metav1.DeletePropagationBackground
	raw, err := json.Marshal(&metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}, PropagationPolicy: &policy,
	})
	if err != nil {
		return err
	}
	err = c.rest.Delete().AbsPath(c.path(r, name)).SetHeader("Content-Type", "application/json").Body(raw).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func decode(r rest.Result, into any) error {
	raw, err := r.Raw()
	if err != nil {
		return r.Error() // the error contains the server's message
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read the API server's answer: %w", err)
	}
	return nil
}

// errWatchEnded is the usual end of a watch.
var errWatchEnded = errors.New("the watch ended")

// await follows the pods of a selector until done returns true, the context ends, or the server refuses.
func (c *client) await(ctx context.Context, selector string, done func([]corev1.Pod) (bool, error)) error {
	for {
		err := c.follow(ctx, selector, done)
		var refused apierrors.APIStatus
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &refused) && !retried(err), errors.As(err, new(*final)):
			return err
		}
		if !sleep(ctx, retryPause) {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// retried reports whether a retry may succeed.
func retried(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsGone(err) || apierrors.IsResourceExpired(err)
}

// final is an error after which the awaited state will not come.
type final struct{ error }

func (f *final) Unwrap() error { return f.error }

// follow lists the pods once and watches them until done.
func (c *client) follow(ctx context.Context, selector string, done func([]corev1.Pod) (bool, error)) error {
	var l corev1.PodList
	if err := c.list(ctx, pods, selector, &l); err != nil {
		return err
	}
	all := map[string]corev1.Pod{}
	for _, p := range l.Items {
		all[p.Name] = p
	}
	ask := func() (bool, error) {
		ok, err := done(slices.Collect(maps.Values(all)))
		if err != nil {
			err = &final{err}
		}
		return ok, err
	}
	if ok, err := ask(); ok || err != nil {
		return err
	}
	query := c.rest.Get().AbsPath(c.path(pods)).Param("labelSelector", selector).Param("watch", "true").Param("resourceVersion", l.ResourceVersion)
	body, err := query.Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	for events := json.NewDecoder(body); ; {
		p, gone, err := nextPod(events)
		if err != nil {
			return err
		}
		if gone {
			delete(all, p.Name)
		} else {
			all[p.Name] = p
		}
		if ok, err := ask(); ok || err != nil {
			return err
		}
	}
}

func nextPod(events *json.Decoder) (p corev1.Pod, gone bool, err error) {
	var e metav1.WatchEvent
	if err := events.Decode(&e); err != nil {
		if errors.Is(err, io.EOF) {
			err = errWatchEnded
		}
		return p, false, err
	}
	if e.Type == "ERROR" { // the known version is too old
		return p, false, errWatchEnded
	}
	return p, e.Type == "DELETED", json.Unmarshal(e.Object.Raw, &p)
}

// execURL returns the URL that runs a command beside a pod's first process.
func (c *client) execURL(pod, container string, argv []string) *url.URL {
	r := c.rest.Get().AbsPath(c.path(pods, pod, "exec")).Param("container", container).
		Param("stdin", "true").Param("stdout", "true").Param("stderr", "true")
	for _, a := range argv {
		r = r.Param("command", a)
	}
	return r.URL()
}

// sleep waits and reports whether the context is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
