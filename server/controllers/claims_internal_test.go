package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	keptClaim  = `{"metadata":{"finalizers":["kubernetes.io/pvc-protection"]}}`
	goingClaim = `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z","finalizers":["kubernetes.io/pvc-protection"]}}`
)

func runClaims(w *world) func(context.Context) error {
	return (&ClaimProtection{Chore: Chore{API: w, Cache: w.cache, Log: quiet, Clock: time.Now}}).Run
}

// TestClaimProtection: claims have the finalizer, and those that are being deleted lose it once
// no pod that a kubelet knows uses them.
func TestClaimProtection(t *testing.T) {
	user := func(node, more string) string {
		return fmt.Sprintf(`{"spec":{"nodeName":%q,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}]}%s}`, node, more)
	}
	temporary := func(metadata string) string {
		return `{"metadata":{"uid":"pod-uid"` + metadata + `},"spec":{"nodeName":"n","volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{}}}]}}`
	}
	ownedBy := func(uid string) string {
		return strings.Replace(goingClaim, `{"metadata":{`, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"`+uid+`","controller":true}],`, 1)
	}
	for name, c := range map[string]struct {
		claim, text string
		pod         string // "": there is none
		gone        bool
	}{
		"nobody uses it":                    {claim: "c", text: goingClaim, gone: true},
		"a pod on a node does":              {claim: "c", text: goingClaim, pod: user("n", "")},
		"a pod on a node does that ended":   {claim: "c", text: goingClaim, pod: user("n", `,"status":{"phase":"Succeeded"}`)},
		"a pod that is on no node":          {claim: "c", text: goingClaim, pod: user("", ""), gone: true},
		"another claim":                     {claim: "d", text: goingClaim, pod: user("n", ""), gone: true},
		"a pod that it was made for":        {claim: "p-v", text: ownedBy("pod-uid"), pod: temporary("")},
		"another pod that it was made for":  {claim: "p-v", text: ownedBy("other-uid"), pod: temporary(""), gone: true},
		"one that was made for a dead pod":  {claim: "p-v", text: ownedBy("pod-uid"), pod: temporary(`,"deletionTimestamp":"2020-01-01T00:00:00Z","deletionGracePeriodSeconds":0`), gone: true},
		"one that was made for a going pod": {claim: "p-v", text: ownedBy("pod-uid"), pod: temporary(`,"deletionTimestamp":"2020-01-01T00:00:00Z","deletionGracePeriodSeconds":30`)},
		"it is wanted":                      {claim: "c", text: `{"metadata":{"finalizers":["mine"]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			during(t, func(w *world) {
				if c.pod != "" {
					w.set("pods", "a", "p", c.pod)
					w.set("pods", "b", "p", c.pod)
				}
				w.set(claimsStorage, "a", c.claim, c.text)
				pass(time.Second)
				if got := w.read(claimsStorage, "a", c.claim); (got == "") != c.gone || got != "" && !strings.Contains(got, claimsFinalizer) {
					t.Errorf("the claim: %q", got)
				}
				if c.gone || c.text == keptClaim || !strings.Contains(c.text, "deletionTimestamp") {
					return
				}
				w.set("pods", "b", "p", "") // in another namespace
				pass(time.Minute)
				if w.read(claimsStorage, "a", c.claim) == "" {
					t.Error("it went, and a pod uses it")
				}
				w.set("pods", "a", "p", "")
				pass(time.Minute)
				if got := w.read(claimsStorage, "a", c.claim); got != "" {
					t.Errorf("it is held by nobody: %s", got)
				}
			}, runClaims)
		})
	}
}

// TestClaimsThatStay: a claim that cannot be written keeps no other waiting, and is tried
// again; nothing is written that is as it should be.
func TestClaimsThatStay(t *testing.T) {
	during(t, func(w *world) {
		w.refuse = func(_, path string) error {
			if strings.HasSuffix(path, "/held") {
				return errors.New("no")
			}
			return nil
		}
		w.set(claimsStorage, "a", "fine", keptClaim)
		w.set(claimsStorage, "a", "held", goingClaim)
		for i := range 20 {
			w.set(claimsStorage, "a", fmt.Sprint("c", i), goingClaim)
			pass(5 * time.Millisecond)
		}
		pass(time.Minute)
		count := map[string]int{}
		for _, call := range w.took() {
			count[call[strings.LastIndexByte(call, '/')+1:]]++
		}
		if count["c0"] != 1 || count["c19"] != 1 || count["fine"] != 0 {
			t.Errorf("%v", count)
		}
		if n := count["held"]; n < 2 || n > 8 {
			t.Errorf("one that cannot be written was tried %d times in a minute", n)
		}
	}, runClaims)
}

// TestFinalizersThatOthersUndo: where a webhook undoes what is written, and changes something
// else each time, it is tried less and less often, and others do not wait.
func TestFinalizersThatOthersUndo(t *testing.T) {
	for storage, run := range map[string]func(w *world) func(context.Context) error{
		claimsStorage: runClaims,
		volumesStorage: func(w *world) func(context.Context) error {
			return (&VolumeProtection{Chore{API: w, Cache: w.cache, Log: quiet, Clock: time.Now}}).Run
		},
	} {
		during(t, func(w *world) {
			writes := 0
			w.alter = func(text string) string {
				if !strings.Contains(text, `"stubborn"`) {
					return text
				}
				writes++
				return fmt.Sprintf(`{"metadata":{"name":"stubborn","annotations":{"written":"%d"}}}`, writes)
			}
			namespace := map[string]string{claimsStorage: "a"}[storage]
			w.set(storage, namespace, "stubborn", `{}`)
			pass(time.Minute)
			if writes < 3 || writes > 8 {
				t.Errorf("%s: %d writes in a minute", storage, writes)
			}
			w.set(storage, namespace, "new", `{}`)
			pass(10 * time.Millisecond)
			if got := w.read(storage, namespace, "new"); !strings.Contains(got, "-protection") {
				t.Errorf("another waits: %s", got)
			}
			w.alter = nil
			pass(5 * time.Minute)
			if got := w.read(storage, namespace, "stubborn"); !strings.Contains(got, "-protection") {
				t.Errorf("when nobody changes it any more: %s", got)
			}
		}, run)
	}
}

// TestVolumeProtection: the same for volumes, which say themselves whether they are bound.
func TestVolumeProtection(t *testing.T) {
	const going = `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z","finalizers":["a/b","kubernetes.io/pv-protection"]},"status":{"phase":%q}}`
	during(t, func(w *world) {
		w.set(volumesStorage, "", "new", `{"metadata":{},"status":{"phase":"Available"}}`)
		w.set(volumesStorage, "", "bound", fmt.Sprintf(going, "Bound"))
		w.set(volumesStorage, "", "free", fmt.Sprintf(going, "Released"))
		pass(time.Second)
		for name, want := range map[string]string{"new": `["kubernetes.io/pv-protection"]`, "bound": `["a/b","kubernetes.io/pv-protection"]`, "free": `["a/b"]`} {
			if got := w.read(volumesStorage, "", name); !strings.Contains(got, `"finalizers":`+want) {
				t.Errorf("%s: %s", name, got)
			}
		}
		if got := w.took(); len(got) != 2 {
			t.Errorf("%v", got)
		}
		w.refuse = func(string, string) error { w.refuse = nil; return errors.New("once") }
		w.set(volumesStorage, "", "bound", fmt.Sprintf(going, "Released"))
		pass(2 * time.Second)
		if got := w.read(volumesStorage, "", "bound"); !strings.Contains(got, `"finalizers":["a/b"]`) {
			t.Errorf("once it is free: %s", got)
		}
	}, func(w *world) func(context.Context) error {
		return (&VolumeProtection{Chore{API: w, Cache: w.cache, Log: quiet, Clock: time.Now}}).Run
	})
}
