package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/servertest"
)

// meanwhile does something once while a write of an object called "late" is admitted.
type meanwhile struct{ do atomic.Pointer[func()] }

func (*meanwhile) Name() string                     { return "Meanwhile" }
func (*meanwhile) Handles(admission.Operation) bool { return true }

func (m *meanwhile) Validate(_ context.Context, a *admission.Attributes) error {
	if a.Name != "late" {
		return nil
	}
	if do := m.do.Swap(nil); do != nil {
		(*do)()
	}
	return nil
}

const (
	buoys = "/apis/example.com/%s/namespaces/default/buoys"
	buoy  = `{"apiVersion":"example.com/v1","kind":"Buoy","metadata":{"name":%q},"spec":{"color":%q}}`
)

// defineBuoys makes a definition with two versions, of which the first is stored.
func defineBuoys(t *testing.T, s *servertest.Server) {
	t.Helper()
	version := func(name string, stored bool) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`, name, stored)
	}
	s.Must("POST", definitionsPath, `{"metadata":{"name":"buoys.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"buoys","kind":"Buoy"},
		"versions":[`+version("v1", true)+","+version("v2", false)+`]}}`)
	servertest.Eventually(t, func() bool { return s.Do("GET", fmt.Sprintf(buoys, "v1"), "").Code == http.StatusOK })
}

// TestStorageVersionChangesMeanwhile: an object that is being written while the stored version changes is served in the version that
// a client asks for.
func TestStorageVersionChangesMeanwhile(t *testing.T) {
	for verb, write := range map[string]func(s *servertest.Server) []byte{
		"create": func(s *servertest.Server) []byte {
			return s.Must("POST", fmt.Sprintf(buoys, "v1"), fmt.Sprintf(buoy, "late", "red"))
		},
		"patch": func(s *servertest.Server) []byte {
			return s.Must("PATCH", fmt.Sprintf(buoys, "v1")+"/late", `{"spec":{"color":"red"}}`, "Content-Type", "application/merge-patch+json")
		},
	} {
		t.Run(verb, func(t *testing.T) {
			change := &meanwhile{}
			s := servertest.Start(t, func(c *server.Config) { c.Plugins = []admission.Plugin{change} })
			defineBuoys(t, s)
			if verb != "create" {
				s.Must("POST", fmt.Sprintf(buoys, "v1"), fmt.Sprintf(buoy, "late", "green"))
			}
			change.do.Store(new(func() {
				s.Must("PATCH", definitionsPath+"/buoys.example.com",
					`[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`,
					"Content-Type", "application/json-patch+json")
			}))
			var answer, read metav1.PartialObjectMetadata
			for _, one := range []struct {
				text []byte
				into *metav1.PartialObjectMetadata
			}{{write(s), &answer}, {s.Must("GET", fmt.Sprintf(buoys, "v2")+"/late", ""), &read}} {
				if err := json.Unmarshal(one.text, one.into); err != nil {
					t.Fatal(err)
				}
			}
			if answer.APIVersion != "example.com/v1" || read.APIVersion != "example.com/v2" || answer.ResourceVersion != read.ResourceVersion {
				t.Errorf("the answer is in %s at %s, the object in %s at %s", answer.APIVersion, answer.ResourceVersion, read.APIVersion, read.ResourceVersion)
			}
		})
	}
}

// TestDefinitionGoesMeanwhile: an object whose definition was deleted before it was stored is not among those of a later definition of
// that name.
func TestDefinitionGoesMeanwhile(t *testing.T) {
	change := &meanwhile{}
	s := servertest.Start(t, func(c *server.Config) { c.Plugins = []admission.Plugin{change} })
	defineBuoys(t, s)
	change.do.Store(new(func() {
		s.Must("DELETE", definitionsPath+"/buoys.example.com", "")
		servertest.Eventually(t, func() bool { return s.Do("GET", definitionsPath+"/buoys.example.com", "").Code == http.StatusNotFound })
	}))
	if w := s.Do("POST", fmt.Sprintf(buoys, "v1"), fmt.Sprintf(buoy, "late", "red")); w.Code != http.StatusForbidden {
		t.Errorf("the create ends with %d %s", w.Code, w.Body)
	}
	defineBuoys(t, s)
	if w := s.Do("GET", fmt.Sprintf(buoys, "v1")+"/late", ""); w.Code != http.StatusNotFound {
		t.Errorf("a later definition has the object: %d %s", w.Code, w.Body)
	}
}
