#!/bin/sh
# k8s.io/client-go v0.37.2 (rest.Request, below all typed and dynamic clients).
#
# Seen: a POST that is answered with any 5xx and a Retry-After header is sent again, up to ten times: with
# generateName eleven creates for one call. A 429 whose Retry-After is a date is not tried again at all.
# Expected: one create. The documentation of MaxRetries names 429 only, and the code does not repeat a write after a
# broken connection, "as they are not idempotent"; after a 504 of a gateway the object may exist as well. And RFC 9110
# allows a date in Retry-After.
# Who is hurt: programs that create Jobs, Pods or Events with generateName through a load balancer or proxy which adds
# Retry-After to its 502, 503 and 504 (many can, for maintenance): eleven Jobs run where one was asked for, and the
# call still returns an error.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func main() {
	date := time.Now().Add(time.Second).UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		code        int
		after, name string
	}{
		{504, "", "no Retry-After"}, {504, "0", "Retry-After: 0"}, {500, "0", "Retry-After: 0"},
		{429, "0", "Retry-After: 0"}, {429, date, "Retry-After: a date"},
	} {
		creates := 0
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			creates++
			if c.after != "" {
				w.Header().Set("Retry-After", c.after)
			}
			w.WriteHeader(c.code)
		}))
		client := kubernetes.NewForConfigOrDie(&rest.Config{Host: gateway.URL, QPS: -1})
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "job-"}}
		_, err := client.CoreV1().ConfigMaps("default").Create(context.Background(), object, metav1.CreateOptions{})
		fmt.Printf("%d, %s: %d creates, %s\n", c.code, c.name, creates, errors.ReasonForError(err))
		gateway.Close()
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/client-go@v0.37.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
504, no Retry-After: 1 creates, Timeout
504, Retry-After: 0: 11 creates, Timeout
500, Retry-After: 0: 11 creates, InternalError
429, Retry-After: 0: 11 creates, TooManyRequests
429, Retry-After: a date: 1 creates, TooManyRequests
EOF
diff want out
