package custom

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestSlowSchemas: writes that wait for a schema which takes several request limits to compile get "try again" before
// their deadlines, in whatever order they came; the schema is compiled once, and is ready for the next attempts.
func TestSlowSchemas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, s := NewSchemaCache(), &source{read: map[string]int{}, size: 1}
		slow := Source{Kept: kept, Read: func(version string) (*apiextensionsv1.CustomResourceDefinitionVersion, int, error) {
			time.Sleep(200 * time.Second)
			return s.Read(version)
		}}
		d := s.definition(t, kept)
		for _, v := range d.versions {
			name := v.spec.Name
			v.read = func() (*apiextensionsv1.CustomResourceDefinitionVersion, int, error) { return slow.Read(name) }
		}
		v := d.Version("v1")
		var running sync.WaitGroup
		defer running.Wait()
		ctx, end := context.WithCancel(t.Context())
		defer end()
		running.Go(func() { kept.Run(ctx) })
		synctest.Wait()

		began := time.Now()
		var asking sync.WaitGroup
		for i := range 20 {
			asking.Go(func() {
				limit := time.Minute
				if i%2 == 0 {
					limit = 2 * time.Second
				}
				request, done := context.WithTimeout(t.Context(), limit)
				defer done()
				err := v.Ready(request, "ann")
				if seconds, ok := apierrors.SuggestsClientDelay(err); !apierrors.IsTooManyRequests(err) || !ok || seconds < 1 {
					t.Errorf("within %v: %v", limit, err)
				}
				if request.Err() != nil {
					t.Errorf("within %v the result comes too late", limit)
				}
			})
		}
		asking.Wait()
		if waited := time.Since(began); waited != 55*time.Second {
			t.Errorf("they wait for %v", waited)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := v.Ready(gone, "ann"); err != context.Canceled {
			t.Errorf("a canceled caller gets %v", err)
		}
		if err := v.Ready(t.Context(), "ann"); err != nil || time.Since(began) != 200*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if !refused(v) || s.read["v1"] != 1 {
			t.Errorf("it is read %d times", s.read["v1"])
		}

		// No request has used the others: definitions that are written one after the other are compiled when that is over.
		kept.Precompile(d.Version("v2"))
		time.Sleep(quiet / 2)
		kept.Precompile(d.Version("v3"))
		time.Sleep(quiet / 2)
		synctest.Wait()
		if kept.queued() != 0 {
			t.Error("one is compiled while others come")
		}
		time.Sleep(quiet)
		synctest.Wait()
		if kept.queued() != 1 {
			t.Errorf("%d are compiled at a time", kept.queued())
		}
		time.Sleep(400 * time.Second)
		synctest.Wait()
		if s.read["v2"] != 1 || s.read["v3"] != 1 {
			t.Errorf("ahead %v are read", s.read)
		}
		end()
		running.Wait()
		if err := d.Version("v2").Ready(t.Context(), "ann"); err != nil { // compiled by who needs it
			t.Error(err)
		}
	})
}

// slow are versions, of as many definitions as it takes, that take a while to compile.
func slow(t *testing.T, kept *SchemaCache, n int, takes time.Duration) []*Version {
	t.Helper()
	var all []*Version
	for len(all) < n {
		d := (&source{}).definition(t, kept)
		for _, v := range d.versions {
			name, s := v.spec.Name, &source{read: map[string]int{}, size: 1}
			v.read = func() (*apiextensionsv1.CustomResourceDefinitionVersion, int, error) {
				time.Sleep(takes)
				return s.Read(name)
			}
			all = append(all, v)
		}
	}
	return all[:n]
}

// TestUsersTakeTurns: a user whose writes need many schemas, and a definition that the server looks at ahead of need, keep
// another user waiting for one schema at most; a schema that two wait for is compiled in the turn of the first of them.
func TestUsersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = time.Second
		kept := NewSchemaCache()
		versions := slow(t, kept, 24, takes)
		var running sync.WaitGroup
		defer running.Wait()
		ctx, end := context.WithCancel(t.Context())
		defer end()
		running.Go(func() { kept.Run(ctx) })
		kept.Precompile(versions[20:]...)
		time.Sleep(quiet)
		synctest.Wait()
		var asking sync.WaitGroup
		defer asking.Wait()
		for _, v := range versions[:20] {
			asking.Go(func() {
				if err := v.Ready(t.Context(), "greedy"); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wait := func(user string, v *Version, most time.Duration) {
			t.Helper()
			began := time.Now()
			if err := v.Ready(t.Context(), user); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > most {
				t.Errorf("%s waits for %v, want %v at most", user, took, most)
			}
		}
		wait("modest", slow(t, kept, 1, takes)[0], 2*takes)
		wait("another", slow(t, kept, 1, takes)[0], 2*takes)
		wait("modest", versions[19], 2*takes) // greedy's last
	})
}

// TestWaitingIsBounded: no more than so many schemas wait for a user, and for all; more is refused, so that the client
// comes again.
func TestWaitingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := NewSchemaCache()
		versions := slow(t, kept, 2*maxQueued, time.Hour)
		ctx, end := context.WithCancel(t.Context())
		defer end()
		kept.open()
		var asking sync.WaitGroup
		refused := map[string]int{}
		var mu sync.Mutex
		ask := func(user string, v *Version) {
			asking.Go(func() {
				if err := v.Ready(ctx, user); apierrors.IsTooManyRequests(err) {
					mu.Lock()
					defer mu.Unlock()
					refused[user]++
				}
			})
			synctest.Wait()
		}
		const n = maxQueued/2 + 10
		for i := range n {
			ask("greedy", versions[i])
			ask("many", versions[n+i])
		}
		ask("greedy", versions[0]) // is asked for already
		ask("late", versions[0])   // for another user
		if refused["greedy"] != 10 || refused["many"] != 10 || refused["late"] != 0 || kept.queue.Len() != maxQueued {
			t.Errorf("%v are refused, %d wait", refused, kept.queue.Len())
		}
		end()
		asking.Wait()
		kept.close()
		if kept.queue.Len() != 0 || len(kept.pending) != 0 {
			t.Errorf("%d are left", kept.queue.Len())
		}
	})
}

func (k *SchemaCache) queued() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.pending)
}
