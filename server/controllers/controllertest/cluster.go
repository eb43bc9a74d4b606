package controllertest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

// Cluster is a cache, and an API that writes to it.
type Cluster struct {
	t         *testing.T
	Catalogue *kinds.Catalogue
	Cache     *cache.Cache

	sync.Mutex // guards the fields below
	last       int64
	live       map[sqlstore.Key]sqlstore.Row
	Writes     []string
	Fail       int    // number of writes that will fail
	Refuse     string // the object whose writes fail
}

// Unreadable is the stored value of an unreadable object.
type Unreadable string

// NewCluster returns a Cluster with all built-in kinds.
func NewCluster(t *testing.T) *Cluster {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	return &Cluster{t: t, Catalogue: catalogue, Cache: cache.New(catalogue), live: map[sqlstore.Key]sqlstore.Row{}}
}

// Set stores an object, and deletes it where obj is nil.
func (c *Cluster) Set(storage, namespace, name string, obj any) {
	c.t.Helper()
	c.Lock()
	defer c.Unlock()
	c.setLocked(storage, namespace, name, obj)
}

func (c *Cluster) setLocked(storage, namespace, name string, obj any) {
	c.t.Helper()
	c.last++
	key := sqlstore.Key{Resource: storage, Namespace: namespace, Name: name}
	old, was := c.live[key]
	row := sqlstore.Row{Key: key, Revision: c.last, Created: c.last, Value: old.Value, Deleted: obj == nil}
	if was {
		row.Created = old.Created
	}
	if obj != nil {
		row.Value = c.whole(key, obj)
		c.live[key] = row
	} else {
		delete(c.live, key)
	}
	ch := sqlstore.Change{Row: row}
	if was {
		ch.PrevRevision, ch.PrevValue = old.Revision, old.Value
	}
	c.Cache.Apply([]sqlstore.Change{ch})
}

// whole returns an object as it would be stored, with its kind.
func (c *Cluster) whole(key sqlstore.Key, obj any) []byte {
	c.t.Helper()
	if stored, ok := obj.(Unreadable); ok {
		return []byte(stored)
	}
	data, err := json.Marshal(obj)
	tree := map[string]any{}
	if err == nil {
		err = json.Unmarshal(data, &tree)
	}
	if err != nil {
		c.t.Error(err)
	}
	r := c.Catalogue.ByStorage(key.Resource)
	tree["apiVersion"], tree["kind"] = r.Storage.GVK.ToAPIVersionAndKind()
	metadata, _ := tree["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	if metadata["name"] = key.Name; key.Namespace != "" {
		metadata["namespace"] = key.Namespace
	}
	tree["metadata"] = metadata
	if data, err = json.Marshal(tree); err != nil {
		c.t.Error(err)
	}
	return data
}

// Get reads an object from the cache, and reports whether it is there.
func (c *Cluster) Get(storage, namespace, name string, into any) bool {
	c.t.Helper()
	item := c.Cache.Get(storage, namespace, name)
	if item == nil {
		return false
	}
	if err := json.Unmarshal(item.JSON(), into); err != nil {
		c.t.Error(err)
	}
	return true
}

// Call understands GET, POST, PUT, applies and deletes of objects in namespaces and of
// ClusterRoles, writes of flow control objects, and applies of the status of FlowSchemas.
// Other resources are not served.
func (c *Cluster) Call(_ context.Context, _, method, path, _ string, body, into any) error {
	c.Lock()
	c.Writes = append(c.Writes, method+" "+path)
	failing := c.Fail > 0 || c.Refuse != "" && strings.HasSuffix(path, "/"+c.Refuse)
	if c.Fail > 0 {
		c.Fail--
	}
	c.Unlock()
	if failing {
		return errors.New("try again")
	}
	u, err := url.Parse(path)
	if err != nil {
		return err
	}
	path = u.Path
	parts := strings.Split(strings.Trim(path, "/"), "/")
	storage, namespace, name := "clusterroles.rbac.authorization.k8s.io", "", parts[len(parts)-1]
	if i := slices.Index(parts, "namespaces"); i > 0 && len(parts) > i+2 {
		namespace, storage = parts[i+1], parts[i+2]
		if parts[0] == "apis" {
			storage += "." + parts[1]
		}
		if method == http.MethodPost && len(parts) == i+3 {
			name = ""
		}
	}
	if kind := parts[len(parts)-1]; method == http.MethodPost && (kind == "flowschemas" || kind == "prioritylevelconfigurations") {
		storage, name = kind+".flowcontrol.apiserver.k8s.io", ""
	} else if kind := parts[len(parts)-2]; kind == "flowschemas" || kind == "prioritylevelconfigurations" {
		storage = kind + ".flowcontrol.apiserver.k8s.io"
	}
	if parts[len(parts)-2] == "storageversions" {
		storage = "storageversions.internal.apiserver.k8s.io"
	}
	if strings.HasSuffix(path, "/status") {
		storage, name = "flowschemas.flowcontrol.apiserver.k8s.io", parts[len(parts)-2]
	}
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: storage}, name)
	switch {
	case c.Catalogue.ByStorage(storage) == nil:
		return missing
	case method == http.MethodGet:
		if !c.Get(storage, namespace, name, into) {
			return missing
		}
		return nil
	case method == http.MethodDelete:
		c.Set(storage, namespace, name, nil)
		return nil
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	obj := map[string]any{}
	if err := json.Unmarshal(data, &obj); err != nil {
		return err
	}
	c.Lock() // make check and write atomic
	defer c.Unlock()
	if name == "" {
		name = obj["metadata"].(map[string]any)["name"].(string)
		if c.Cache.Get(storage, namespace, name) != nil {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: storage}, name)
		}
	}
	if method == http.MethodPatch {
		whole := map[string]any{}
		if !c.Get(storage, namespace, name, &whole) {
			return missing
		}
		for _, member := range []string{"rules", "status"} {
			if obj[member] != nil {
				whole[member] = obj[member]
			}
		}
		obj = whole
	}
	c.setLocked(storage, namespace, name, obj)
	return nil
}

// Written returns the writes since its last call.
func (c *Cluster) Written() []string {
	c.Lock()
	defer c.Unlock()
	out := c.Writes
	c.Writes = nil
	return out
}
