//go:build ignore

// go run client.go URL TOKEN CA: see h2clients_test.go.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	path := os.Args[1] + "/api/v1/namespaces/default/configmaps"
	ca, err := os.ReadFile(os.Args[3])
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	do := func(method, url, body string) *http.Response {
		request, err := http.NewRequest(method, url, strings.NewReader(body))
		check(err)
		request.Header.Set("Authorization", "Bearer "+os.Args[2])
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		check(err)
		return response
	}

	large := strings.Repeat("x", 1000000)
	created := do("POST", path, `{"metadata":{"name":"large"},"data":{"a":"`+large+`"}}`)
	check(created.Body.Close())
	fmt.Println("created", created.StatusCode)
	listed := do("GET", path, "")
	list, err := io.ReadAll(listed.Body)
	check(err)
	check(listed.Body.Close())
	fmt.Println("listed", listed.StatusCode, strings.Contains(string(list), large) && listed.ProtoMajor == 2)
	watch := do("GET", path+"?watch=true&fieldSelector=metadata.name%3Dsmall", "")
	lines := bufio.NewScanner(watch.Body)
	for lines.Scan() {
		var event struct {
			Type   string
			Object struct{ Data map[string]string }
		}
		check(json.Unmarshal(lines.Bytes(), &event))
		fmt.Println("event", event.Type, event.Object.Data["a"])
	}
	check(lines.Err())
	fmt.Println("drained", watch.ProtoMajor == 2)
}

func check(err error) {
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
}
