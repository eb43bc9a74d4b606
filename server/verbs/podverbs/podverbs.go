// Package podverbs serves the subresources of pods that are not part of the stored object: binding, eviction,
// and connections to containers, to services and to nodes.
//
// A pod is bound once, and concurrent evictions never exceed the pod's budget.
package podverbs

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/verbs"
)

// Handlers returns the specials for verbs.Handler.Special. k configures connections to kubelets.
func Handlers(k Kubelet) map[string]verbs.Special {
	d := k.dialer()
	return map[string]verbs.Special{
		"bindings":         bind,
		"pods/binding":     bind,
		"pods/eviction":    evict,
		"pods/log":         d.log,
		"pods/exec":        connects(d.exec),
		"pods/attach":      connects(d.attach),
		"pods/portforward": connects(d.portForward),
		"pods/proxy":       connects(d.podProxy),
		"services/proxy":   connects(d.serviceProxy),
		"nodes/proxy":      connects(d.nodeProxy),
	}
}

// podResource returns the resource pods.
func podResource(h *verbs.Handler) *kinds.Resource { return h.Catalogue.Lookup("", "v1", "pods") }

// podPlace returns the place of a pod in the namespace of the call.
func podPlace(h *verbs.Handler, c *verbs.Call, name string) objects.Place {
	return objects.Place{Resource: podResource(h), Namespace: c.Info.Namespace, Name: name}
}

// succeed answers a POST that creates no object with a Status.
func succeed(h *verbs.Handler, c *verbs.Call) error {
	return h.Send(c, http.StatusCreated, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Code:     http.StatusCreated,
	})
}

// post reads the body of a POST into obj, which determines the kind, and the options.
func post(h *verbs.Handler, c *verbs.Call, obj kinds.Object) (*metav1.CreateOptions, error) {
	options, err := h.ReadPost(c, obj.GetObjectKind().GroupVersionKind(), obj)
	if err != nil {
		return nil, err
	}
	return options, c.MatchNamespace(obj)
}

// matchName compares the name in a body with that in the path. kind names the body in errors.
func matchName(c *verbs.Call, kind string, obj kinds.Object) error {
	if c.Info.Name != "" && obj.GetName() != c.Info.Name {
		return apierrors.NewBadRequest("name in URL does not match name in " + kind + " object")
	}
	return nil
}

func plain(err error) error {
	if err == nil {
		return nil
	}
	return status.Plain(err.Error())
}
