// Package stock has the initial objects of stock servers of each release, for tests that compare this server with
// them.
//
// objects.json.gz has the answers of a kube-apiserver 1.32.6, and of a 1.36.2 that emulated each of the
// other releases, to lists of their default objects, without what differs from cluster to cluster: UIDs,
// times, revisions, managed fields, status, and the rules that ClusterRoles gather from others. It has each
// release twice: with its default feature gates, and with those on that add roles or versions.
package stock

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"testing"

	"github.com/rowlock/rowlock/server/release"
)

//go:embed objects.json.gz
var packed []byte

// Server has the objects that a stock server has from its start.
type Server struct {
	Release release.Version `json:"release"`
	Gates   []string        `json:"gates"` // those that were on; nil: those that are by default
	// Objects are its default objects as JSON values, by resource ("GROUP/VERSION/RESOURCE"), then by
	// "NAMESPACE/NAME".
	Objects map[string]map[string]any `json:"-"`
}

// Name names the server in tests.
func (s *Server) Name() string {
	if s.Gates == nil {
		return s.Release.String()
	}
	return s.Release.String() + " with gates"
}

// Servers returns all stock servers of the recording.
func Servers(t testing.TB) []Server {
	t.Helper()
	var document struct {
		Servers []Server
		Objects []struct {
			Resource string
			Servers  []int // that hold it so
			Object   map[string]any
		}
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(r).Decode(&document); err != nil {
		t.Fatal(err)
	}
	for _, o := range document.Objects {
		name := Name(o.Object)
		for _, i := range o.Servers {
			s := &document.Servers[i]
			if s.Objects == nil {
				s.Objects = map[string]map[string]any{}
			}
			if s.Objects[o.Resource] == nil {
				s.Objects[o.Resource] = map[string]any{}
			}
			s.Objects[o.Resource][name] = o.Object
		}
	}
	return document.Servers
}

// Name returns the key of an object: "NAMESPACE/NAME".
func Name(object map[string]any) string {
	m, _ := object["metadata"].(map[string]any)
	namespace, _ := m["namespace"].(string)
	name, _ := m["name"].(string)
	return namespace + "/" + name
}

// Kept returns an object of this server without the parts that the document leaves out.
func Kept(t testing.TB, object any) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]any{}
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	m, _ := kept["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		delete(m, field)
	}
	for _, field := range []string{"status", "kind", "apiVersion"} {
		delete(kept, field)
	}
	if kept["aggregationRule"] != nil {
		delete(kept, "rules")
	}
	return kept
}
