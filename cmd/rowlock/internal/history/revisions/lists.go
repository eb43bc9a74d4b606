package revisions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
)

// listPage is how many objects one request of a list asks for.
const listPage = 250

const acceptMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// Selection is which objects of a resource a list gives.
type Selection struct {
	Namespace string // "": all
	Name      string // one object
	At        int64  // as of this revision; 0: now
	Metadata  bool   // metadata alone
}

// NotKeptError: the server answers a list as of a revision with another one, because it makes the
// resource up on demand.
type NotKeptError struct{ Resource, Wanted, Got string }

func (e *NotKeptError) Error() string {
	return fmt.Sprintf("%s have no past here: as of revision %s the answer is of %q", e.Resource, e.Wanted, e.Got)
}

// Each calls do for the objects of a resource, page by page. Items say their kind. Of a
// resource that is not stored it calls nothing as of a revision: the error is a *NotKeptError, or
// of what another server answers a *cluster.ElsewhereError.
func Each(ctx context.Context, c *cluster.Client, r *cluster.Resource, s Selection, do func(Object) error) error {
	query := url.Values{"limit": {strconv.Itoa(listPage)}}
	if s.Name != "" {
		query.Set("fieldSelector", "metadata.name="+s.Name)
	}
	if s.At > 0 {
		query.Set("resourceVersion", strconv.FormatInt(s.At, 10))
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	}
	request := cluster.Request{Path: r.Path(s.Namespace, ""), Query: query, Own: s.At > 0}
	if s.Metadata {
		request.Accept = acceptMetadata
	}
	for {
		var list struct {
			Kind     string            `json:"kind"`
			Metadata metav1.ListMeta   `json:"metadata"`
			Items    []json.RawMessage `json:"items"`
		}
		if err := c.Do(ctx, request, &list); err != nil {
			return fmt.Errorf("listing %s: %w", r.String(), tooOld(err, s.At))
		}
		if wanted := strconv.FormatInt(s.At, 10); s.At > 0 && list.Metadata.ResourceVersion != wanted {
			return &NotKeptError{r.String(), wanted, list.Metadata.ResourceVersion}
		}
		for _, item := range list.Items {
			var obj Object
			if err := utiljson.Unmarshal(item, &obj); err != nil {
				return fmt.Errorf("listing %s: %w", r.String(), err)
			}
			if !s.Metadata {
				obj["apiVersion"], obj["kind"] = r.APIVersion(), strings.TrimSuffix(list.Kind, "List")
			}
			if err := do(obj); err != nil {
				return err
			}
		}
		if list.Metadata.Continue == "" {
			return nil
		}
		query.Set("continue", list.Metadata.Continue)
		query.Del("resourceVersion") // the token says it
		query.Del("resourceVersionMatch")
	}
}

// Names calls do for what a resource has, now (0) or at a revision.
func Names(ctx context.Context, c *cluster.Client, r *cluster.Resource, namespace string, at int64, do func(cluster.Target) error) error {
	return Each(ctx, c, r, Selection{Namespace: namespace, At: at, Metadata: true}, func(obj Object) error {
		return do(r.Target(Text(obj, "namespace"), Text(obj, "name")))
	})
}

// Text is a text of an object's metadata.
func Text(obj Object, field string) string {
	meta, _ := obj["metadata"].(Object)
	text, _ := meta[field].(string)
	return text
}

// tooOld says what can be done where a server does not keep as much.
func tooOld(err error, at int64) error {
	if at > 0 && apierrors.IsResourceExpired(err) {
		return fmt.Errorf("revision %d is older than what the server keeps (its --history-retention): %w", at, err)
	}
	return err
}

// LeftOut says whether a list failed in a way that concerns its resource alone, so that those
// who look at many do without it: the user may not list it, or it cannot be listed, or has no
// past, or none that is kept for so long.
func LeftOut(err error) bool {
	var notKept *NotKeptError
	var elsewhere *cluster.ElsewhereError
	return errors.As(err, &elsewhere) || Denied(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) || apierrors.IsResourceExpired(err) || errors.As(err, &notKept)
}

// Denied says whether an authorizer said no.
func Denied(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsForbidden(err)
}
