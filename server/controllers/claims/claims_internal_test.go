package claims

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	keptClaim  = `{"metadata":{"finalizers":["kubernetes.io/pvc-protection"]}}`
	goingClaim = `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z","finalizers":["kubernetes.io/pvc-protection"]}}`
)

func runClaims(w *controllertest.FakeAPI) func(context.Context) error {
	return Claims(reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog}).Run
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
			controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
				if c.pod != "" {
					w.Set("pods", "a", "p", c.pod)
					w.Set("pods", "b", "p", c.pod)
				}
				w.Set(Storage, "a", c.claim, c.text)
				controllertest.Advance(time.Second)
				if got := w.Read(Storage, "a", c.claim); (got == "") != c.gone || got != "" && !strings.Contains(got, claimsFinalizer) {
					t.Errorf("the claim: %q", got)
				}
				if c.gone || c.text == keptClaim || !strings.Contains(c.text, "deletionTimestamp") {
					return
				}
				w.Set("pods", "b", "p", "") // in another namespace
				controllertest.Advance(time.Minute)
				if w.Read(Storage, "a", c.claim) == "" {
					t.Error("it went, and a pod uses it")
				}
				w.Set("pods", "a", "p", "")
				controllertest.Advance(time.Minute)
				if got := w.Read(Storage, "a", c.claim); got != "" {
					t.Errorf("it is held by nobody: %s", got)
				}
			}, runClaims)
		})
	}
}

// TestClaimThatTwoPodsName: a claim stays as long as the pod is there that it was made for, whatever pods have volumes whose
// claims would have the same name.
func TestClaimThatTwoPodsName(t *testing.T) {
	pod := func(uid, volume string) string {
		return fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"nodeName":"n","volumes":[{"name":%q,"ephemeral":{"volumeClaimTemplate":{}}}]}}`, uid, volume)
	}
	for owner, other := range map[string]string{"p": "p-v", "p-v": "p"} {
		t.Run(owner, func(t *testing.T) {
			controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
				w.Set("pods", "a", "p", pod("uid-of-p", "v-w"))
				w.Set("pods", "a", "p-v", pod("uid-of-p-v", "w"))
				w.Set(Storage, "a", "p-v-w", strings.Replace(goingClaim, `{"metadata":{`, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"`+owner+`","uid":"uid-of-`+owner+`","controller":true}],`, 1))
				controllertest.Advance(time.Minute)
				if w.Read(Storage, "a", "p-v-w") == "" {
					t.Error("it went, and its pod uses it")
				}
				w.Set("pods", "a", other, "")
				controllertest.Advance(time.Minute)
				if w.Read(Storage, "a", "p-v-w") == "" {
					t.Error("it went with another pod")
				}
				w.Set("pods", "a", owner, "")
				controllertest.Advance(time.Minute)
				if got := w.Read(Storage, "a", "p-v-w"); got != "" {
					t.Errorf("it is held by no pod: %s", got)
				}
			}, runClaims)
		})
	}
}

// TestClaimAndPodOfOneCommit: a claim stays that a pod uses which the cache shows later than the deletion of the claim.
func TestClaimAndPodOfOneCommit(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set(Storage, "a", "other", goingClaim) // has the namespace reconciled in a second
		controllertest.Advance(999 * time.Millisecond)
		w.Refuse = func(string, string) error { return errors.New("no") } // Commit allows no writes
		w.Commit(func() { controllertest.Advance(time.Second) },
			controllertest.Write{Storage: "pods", Namespace: "a", Name: "p", Text: `{"spec":{"nodeName":"n","volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"used"}}]}}`},
			controllertest.Write{Storage: Storage, Namespace: "a", Name: "used", Text: goingClaim},
		)
		controllertest.Advance(time.Minute)
		for _, call := range w.Calls() {
			if strings.HasSuffix(call, "/used") {
				t.Errorf("a claim that is in use is released: %s", call)
			}
		}
	}, func(w *controllertest.FakeAPI) func(context.Context) error {
		return Claims(reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog, Debounce: time.Second}).Run
	})
}

// TestClaimsThatStay: a claim that cannot be written keeps no other waiting, and is tried
// again; nothing is written that is as it should be.
func TestClaimsThatStay(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Refuse = func(_, path string) error {
			if strings.HasSuffix(path, "/held") {
				return errors.New("no")
			}
			return nil
		}
		w.Set(Storage, "a", "fine", keptClaim)
		w.Set(Storage, "a", "held", goingClaim)
		for i := range 20 {
			w.Set(Storage, "a", fmt.Sprint("c", i), goingClaim)
			controllertest.Advance(5 * time.Millisecond)
		}
		controllertest.Advance(time.Minute)
		count := map[string]int{}
		for _, call := range w.Calls() {
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

// TestFinalizersThatOthersUndo: if a webhook undoes the write, and makes another change each time,
// it is tried less and less often, and others do not wait.
func TestFinalizersThatOthersUndo(t *testing.T) {
	for storage, run := range map[string]func(w *controllertest.FakeAPI) func(context.Context) error{
		Storage: runClaims,
		volumesStorage: func(w *controllertest.FakeAPI) func(context.Context) error {
			return (&Volumes{reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog}}).Run
		},
	} {
		controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
			writes := 0
			w.Alter = func(text string) string {
				if !strings.Contains(text, `"stubborn"`) {
					return text
				}
				writes++
				return fmt.Sprintf(`{"metadata":{"name":"stubborn","annotations":{"written":"%d"}}}`, writes)
			}
			namespace := map[string]string{Storage: "a"}[storage]
			w.Set(storage, namespace, "stubborn", `{}`)
			controllertest.Advance(time.Minute)
			if writes < 3 || writes > 8 {
				t.Errorf("%s: %d writes in a minute", storage, writes)
			}
			w.Set(storage, namespace, "new", `{}`)
			controllertest.Advance(10 * time.Millisecond)
			if got := w.Read(storage, namespace, "new"); !strings.Contains(got, "-protection") {
				t.Errorf("another waits: %s", got)
			}
			w.Alter = nil
			controllertest.Advance(5 * time.Minute)
			if got := w.Read(storage, namespace, "stubborn"); !strings.Contains(got, "-protection") {
				t.Errorf("when nobody changes it any more: %s", got)
			}
		}, run)
	}
}

// TestVolumeProtection: the same for volumes, whose own status shows whether they are bound.
func TestVolumeProtection(t *testing.T) {
	const going = `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z","finalizers":["a/b","kubernetes.io/pv-protection"]},"status":{"phase":%q}}`
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set(volumesStorage, "", "new", `{"metadata":{},"status":{"phase":"Available"}}`)
		w.Set(volumesStorage, "", "bound", fmt.Sprintf(going, "Bound"))
		w.Set(volumesStorage, "", "free", fmt.Sprintf(going, "Released"))
		controllertest.Advance(time.Second)
		for name, want := range map[string]string{"new": `["kubernetes.io/pv-protection"]`, "bound": `["a/b","kubernetes.io/pv-protection"]`, "free": `["a/b"]`} {
			if got := w.Read(volumesStorage, "", name); !strings.Contains(got, `"finalizers":`+want) {
				t.Errorf("%s: %s", name, got)
			}
		}
		if got := w.Calls(); len(got) != 2 {
			t.Errorf("%v", got)
		}
		w.Refuse = func(string, string) error { w.Refuse = nil; return errors.New("once") }
		w.Set(volumesStorage, "", "bound", fmt.Sprintf(going, "Released"))
		controllertest.Advance(2 * time.Second)
		if got := w.Read(volumesStorage, "", "bound"); !strings.Contains(got, `"finalizers":["a/b"]`) {
			t.Errorf("once it is free: %s", got)
		}
	}, func(w *controllertest.FakeAPI) func(context.Context) error {
		return (&Volumes{reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog}}).Run
	})
}
