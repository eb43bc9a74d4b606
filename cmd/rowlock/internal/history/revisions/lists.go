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

// listPage is the number of objects in a page of a list.
const listPage = 250

const acceptMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// Selection selects the objects of a list.
type Selection struct {
	Namespace string // "": all
	Name      string // one object
	At        int64  // as of this revision; 0: now
	Metadata  bool   // metadata alone
}

// NotKeptError: the server answers a list at an exact revision with another revision, because it computes the
// resource on demand.
type NotKeptError struct{ Resource, Wanted, Got string }

func (e *NotKeptError) Error() string {
	return fmt.Sprintf("%s have no past here: as of revision %s the answer is of %q", e.Resource, e.Wanted, e.Got)
}

// Each calls do for the objects of a resource, page by page. Items have their kind. If the resource has no
// history, Each calls nothing for a past revision and returns a *NotKeptError, or a *cluster.ForwardedError if an
// aggregated server serves it.
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
		query.Del("resourceVersion") // the token implies it
		query.Del("resourceVersionMatch")
	}
}

// Names calls do for the names of a resource's objects, now (0) or at a revision.
func Names(ctx context.Context, c *cluster.Client, r *cluster.Resource, namespace string, at int64, do func(cluster.Target) error) error {
	return Each(ctx, c, r, Selection{Namespace: namespace, At: at, Metadata: true}, func(obj Object) error {
		return do(r.Target(Text(obj, "namespace"), Text(obj, "name")))
	})
}

// Text returns a string field of an object's metadata.
func Text(obj Object, field string) string {
	meta, _ := obj["metadata"].(Object)
	text, _ := meta[field].(string)
	return text
}

// tooOld adds a remedy to the error that the history does not reach back far enough.
func tooOld(err error, at int64) error {
	if at > 0 && apierrors.IsResourceExpired(err) {
		return fmt.Errorf("revision %d is older than what the server keeps (its --history-retention): %w", at, err)
	}
	return err
}

// IsSkipped reports whether a list failed for a reason that concerns its resource alone, so that a command on many
// resources goes on: the user may not list it, it cannot be listed, or its history is missing or too short.
func IsSkipped(err error) bool {
	var notKept *NotKeptError
	var elsewhere *cluster.ForwardedError
	return errors.As(err, &elsewhere) || Denied(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err) || apierrors.IsResourceExpired(err) || errors.As(err, &notKept)
}

// Denied reports whether the user lacks the right.
func Denied(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsForbidden(err)
}
