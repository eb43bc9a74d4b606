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

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cluster"
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

// Each calls do for the objects of a resource, page by page. Items say their kind.
func Each(ctx context.Context, c *cluster.Client, r *cluster.Resource, s Selection, do func(Object) error) error {
	query := url.Values{"limit": {strconv.Itoa(listPage)}}
	if s.Name != "" {
		query.Set("fieldSelector", "metadata.name="+s.Name)
	}
	if s.At > 0 {
		query.Set("resourceVersion", strconv.FormatInt(s.At, 10))
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	}
	request := cluster.Request{Path: r.Path(s.Namespace, ""), Query: query}
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
			return fmt.Errorf("listing %s: %w", r.FullName(), tooOld(err, s.At))
		}
		for _, item := range list.Items {
			var obj Object
			if err := utiljson.Unmarshal(item, &obj); err != nil {
				return fmt.Errorf("listing %s: %w", r.FullName(), err)
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

// Denied says whether an authorizer said no.
func Denied(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsForbidden(err)
}
