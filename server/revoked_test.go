package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestRevokedWatches: watches of a service account end within minutes after a binding, a role's rules or the account are gone,
// and those of others do not.
func TestRevokedWatches(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, servertest.Complete(t))
	const roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/"
	tokenOf := func(name string) string {
		s.Must("POST", "/api/v1/namespaces/default/serviceaccounts", fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
		s.Must("POST", roles+"roles", fmt.Sprintf(`{"metadata":{"name":%q},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["watch"]}]}`, name))
		s.Must("POST", roles+"rolebindings", fmt.Sprintf(`{"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":%q},"subjects":[{"kind":"ServiceAccount","name":%q,"namespace":"default"}]}`, name, name, name))
		var request struct{ Status struct{ Token string } }
		if err := json.Unmarshal(s.Must("POST", "/api/v1/namespaces/default/serviceaccounts/"+name+"/token", `{"spec":{"expirationSeconds":3600}}`), &request); err != nil {
			t.Fatal(err)
		}
		return request.Status.Token
	}
	one := s.Client.Transport.(*http.Transport).TLSClientConfig.Clone()
	one.NextProtos = []string{"http/1.1"}
	older := &http.Client{Transport: &http.Transport{TLSClientConfig: one, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}}
	t.Cleanup(older.CloseIdleConnections)
	watch := func(client *http.Client, token string) (ended <-chan error) {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		r, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/api/v1/namespaces/default/secrets?watch=1&timeoutSeconds=2000000000", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(r)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		end := make(chan error, 1)
		go func() {
			defer resp.Body.Close()
			_, err := io.Copy(io.Discard, bufio.NewReader(resp.Body))
			end <- err
		}()
		return end
	}
	var stay []<-chan error
	over := map[string][]<-chan error{}
	for _, name := range []string{"binding", "rules", "account", "none"} {
		token := tokenOf(name)
		for _, client := range []*http.Client{s.Client, older} {
			if end := watch(client, token); name == "none" {
				stay = append(stay, end)
			} else {
				over[name] = append(over[name], end)
			}
		}
	}
	s.Must("DELETE", roles+"rolebindings/binding", "")
	s.Must("PUT", roles+"roles/rules", `{"metadata":{"name":"rules"},"rules":[]}`)
	s.Must("DELETE", "/api/v1/namespaces/default/serviceaccounts/account", "")
	deadline := time.After(3 * time.Minute)
	for name, ends := range over {
		for _, end := range ends {
			select {
			case err := <-end:
				if err != nil {
					t.Errorf("%s: the watch ends with %v", name, err)
				}
			case <-deadline:
				t.Fatalf("%s: the watch goes on", name)
			}
		}
	}
	for _, end := range stay {
		select {
		case err := <-end:
			t.Errorf("the watch of another account ends: %v", err)
		default:
		}
	}
}
