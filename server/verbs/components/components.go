// Package components serves ComponentStatuses: the health of parts of the control plane, which are not stored. It
// probes all components concurrently; a component that does not answer in time is unhealthy.
package components

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/forms"
	tables "github.com/rowlock/rowlock/codecs/table"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/verbs"
)

// Key is the resource that Handler serves.
const Key = "componentstatuses"

// timeout bounds the answer of a component.
const timeout = 5 * time.Second

// Component is a part of the control plane with a health probe.
type Component struct {
	Name string
	// Probe returns the component's answer; an error is the reason why it is unhealthy.
	Probe func(ctx context.Context) (message string, err error)
}

// Local probes a component on this machine through HTTPS. Its certificate is not verified: the request
// contains no secrets, nothing depends on the answer, and redirects are not followed.
func Local(name string, port int) Component {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
		DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	url := fmt.Sprintf("https://127.0.0.1:%d/healthz", port)
	return Component{Name: name, Probe: func(ctx context.Context) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return "", err
		}
		response, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, 4<<10))
		if err != nil {
			return "", err
		}
		if response.StatusCode != http.StatusOK {
			return "", fmt.Errorf("unhealthy http status code: %d: %s", response.StatusCode, body)
		}
		return string(body), nil
	}}
}

// Handler serves the statuses of components, and of the store under the name etcd-0.
func Handler(others ...Component) verbs.Special {
	return func(h *verbs.Handler, c *verbs.Call) error {
		all := append(slices.Clone(others), Component{Name: "etcd-0", Probe: func(ctx context.Context) (string, error) {
			_, err := h.Objects.Head(ctx)
			return "ok", err
		}})
		form, err := negotiate(h, c)
		if err != nil {
			return err
		}
		if _, err := tables.ParseInclude(c.Info.Query.Get("includeObject")); err != nil {
			return err
		}
		if c.Info.Name != "" && !c.Info.NameFromSelector {
			for _, component := range all {
				if component.Name == c.Info.Name {
					status := ask(c.Context(), component)
					return h.Answers.Generated(&c.Request, form, http.StatusOK, []kinds.Object{status}, status)
				}
			}
			if c.Resource.Release.Has(release.BadRequests) {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "componentstatus"}, c.Info.Name)
			}
			return status.Plain("Component not found: " + c.Info.Name)
		}
		wanted, err := selected(c.Info, all)
		if err != nil {
			return err
		}
		rows, whole := many(probeAll(c.Context(), wanted))
		return h.Answers.Generated(&c.Request, form, http.StatusOK, rows, whole)
	}
}

// negotiate determines the form of the answer; it validates the parameters of a list first.
func negotiate(h *verbs.Handler, c *verbs.Call) (codecs.Form, error) {
	types := forms.Forms{}.Types()
	list := c.Info.Name == "" || c.Info.NameFromSelector
	produces := types
	if list {
		produces = forms.Forms{}.ListTypes()
	}
	if err := codecs.Acceptable(c.R, produces); err != nil {
		return codecs.Form{}, err
	}
	if list {
		if _, err := h.ReadList(c); err != nil {
			return codecs.Form{}, err
		}
	}
	return codecs.Negotiate(c.R, codecs.Offer{Types: types, Transforms: codecs.ResourceTransforms})
}

// selected returns the components that a list selects. They have no labels.
func selected(list *request.Info, all []Component) ([]Component, error) {
	byLabel, err := list.Labels()
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := list.Fields()
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, requirement := range byField.Requirements() {
		if requirement.Field != metav1.ObjectNameField && requirement.Field != "metadata.namespace" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%q is not a known field selector: only %q, %q",
				requirement.Field, metav1.ObjectNameField, "metadata.namespace"))
		}
	}
	var wanted []Component
	for _, component := range all {
		if byLabel.Matches(labels.Set{}) && byField.Matches(fields.Set{metav1.ObjectNameField: component.Name, "metadata.namespace": ""}) {
			wanted = append(wanted, component)
		}
	}
	return wanted, nil
}

func probeAll(ctx context.Context, components []Component) []corev1.ComponentStatus {
	list := make([]corev1.ComponentStatus, len(components))
	var group sync.WaitGroup
	for i, component := range components {
		group.Go(func() { list[i] = *ask(ctx, component) })
	}
	group.Wait()
	return list
}

func ask(ctx context.Context, component Component) *corev1.ComponentStatus {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	message, err := component.Probe(ctx)
	condition := corev1.ComponentCondition{Type: corev1.ComponentHealthy, Status: corev1.ConditionTrue, Message: message}
	if err != nil {
		condition.Status, condition.Message = corev1.ConditionFalse, err.Error()
	}
	return &corev1.ComponentStatus{
		TypeMeta:   metav1.TypeMeta{Kind: "ComponentStatus", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: component.Name},
		Conditions: []corev1.ComponentCondition{condition},
	}
}

// many returns a list of statuses.
func many(list []corev1.ComponentStatus) (rows []kinds.Object, whole runtime.Object) {
	bare := slices.Clone(list)
	for i := range list {
		rows = append(rows, &list[i])
		bare[i].TypeMeta = metav1.TypeMeta{}
	}
	return rows, &corev1.ComponentStatusList{TypeMeta: metav1.TypeMeta{Kind: "ComponentStatusList", APIVersion: "v1"}, Items: bare}
}
