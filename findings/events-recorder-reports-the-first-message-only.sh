#!/bin/sh
# k8s.io/client-go v0.37.2, tools/events (the recorder of events.k8s.io, which kube-scheduler and newer operators use), beside tools/record.
#
# Seen: the new recorder takes events of the same object, type, reason and action for one series, whatever they say. The message of the first one is
# sent, the second one counts the series to 2, and nothing more is sent until the series has been quiet for six minutes, or for half an hour
# while it is not. The older recorder sends each message.
# Expected: the message in what makes two events the same, or the newest message in the series.
# Who is hurt: whoever looks at `kubectl describe`: "disk full" stands there while the volume has been failing with "permission denied" for
# a quarter of an hour, and "x2" for a thousand failures. Operators meet it when they move to the newer recorder.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// requests collects what a recorder sends.
type requests struct {
	mu   sync.Mutex
	sent []string
}

func (r *requests) add(format string, values ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, fmt.Sprintf(format, values...))
}

func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sent)
}

func (r *requests) patch(data []byte) {
	var fields struct {
		Count         int
		Note, Message string
		Series        struct{ Count int }
	}
	if err := json.Unmarshal(data, &fields); err != nil {
		panic(err)
	}
	r.add("patch to %d, message %q", fields.Count+fields.Series.Count, fields.Note+fields.Message)
}

type newSink struct{ *requests }

func (s newSink) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.add("create %q", event.Note)
	return event, nil
}

func (s newSink) Update(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.add("update %q", event.Note)
	return event, nil
}

func (s newSink) Patch(_ context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	s.patch(data)
	return event, nil
}

type oldSink struct{ *requests }

func (s oldSink) Create(event *corev1.Event) (*corev1.Event, error) {
	s.add("create %q", event.Message)
	return event, nil
}

func (s oldSink) Update(event *corev1.Event) (*corev1.Event, error) {
	s.add("update %q", event.Message)
	return event, nil
}

func (s oldSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	s.patch(data)
	return event, nil
}

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "a", UID: "c"}}

	newRequests, oldRequests := &requests{}, &requests{}
	newBroadcaster := events.NewBroadcaster(newSink{newRequests})
	if err := newBroadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		panic(err)
	}
	newRecorder := newBroadcaster.NewRecorder(scheme.Scheme, "volumes")
	oldBroadcaster := record.NewBroadcaster()
	oldBroadcaster.StartRecordingToSink(oldSink{oldRequests})
	oldRecorder := oldBroadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "volumes"})

	for i, message := range []string{"disk full", "permission denied", "permission denied", "no such device", "no such device"} {
		newRecorder.Eventf(pod, nil, corev1.EventTypeWarning, "FailedMount", "Mounting", "%s", message)
		oldRecorder.Event(pod, corev1.EventTypeWarning, "FailedMount", message)
		// Events are sent in the background: the first two of the new recorder, all of the old one.
		for deadline := time.Now().Add(time.Minute); (newRequests.count() < min(i+1, 2) || oldRequests.count() <= i) && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
		}
	}
	time.Sleep(3 * time.Second)
	for name, r := range map[string]*requests{"tools/events": newRequests, "tools/record": oldRequests} {
		r.mu.Lock()
		for _, request := range r.sent {
			fmt.Printf("%s: %s\n", name, request)
		}
		r.mu.Unlock()
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/client-go@v0.37.2 k8s.io/api@v0.37.2 2>/dev/null
go run -mod=mod . 2>/dev/null | sort -s -t: -k1,1 | tee out
cat >want <<'EOF'
tools/events: create "disk full"
tools/events: patch to 2, message ""
tools/record: create "disk full"
tools/record: create "permission denied"
tools/record: patch to 2, message "permission denied"
tools/record: create "no such device"
tools/record: patch to 2, message "no such device"
EOF
diff want out
