//go:build unix

package traffic

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const (
	apiServices   = "/apis/apiregistration.k8s.io/v1/apiservices"
	behindGroup   = "behind.rowlock.dev"
	behindVersion = "/apis/" + behindGroup + "/v1"
	behindService = apiServices + "/v1." + behindGroup
	behindHome    = "/api/v1/namespaces/behind"
	facts         = behindVersion + "/facts"
)

// claimed are headers by which a client claims to be another user.
var claimed = http.Header{"X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Extra-Scopes": {"all"}}

// Behind is an aggregated API server. Each of its objects has the name of the only user who may read it. It records whether a server that
// forwards a request names that user, and keeps the credentials and the claims of the client to itself.
type Behind struct {
	server *httptest.Server
	rec    *history.Recorder
}

// NewBehind starts a Behind. The caller must call Close.
func NewBehind(rec *history.Recorder) *Behind {
	b := &Behind{rec: rec}
	b.server = httptest.NewUnstartedServer(b)
	b.server.Config.ErrorLog = log.New(io.Discard, "", 0) // servers are killed in the middle of requests
	b.server.StartTLS()
	return b
}

// Close ends it.
func (b *Behind) Close() { b.server.Close() }

// delegation returns the APIService.
func (b *Behind) delegation() string {
	port := b.server.Listener.Addr().(*net.TCPAddr).Port
	return fmt.Sprintf(`{"metadata":{"name":"v1.%s"},"spec":{"group":%[1]q,"version":"v1","groupPriorityMinimum":1000,"versionPriority":10,"insecureSkipTLSVerify":true,"service":{"namespace":"behind","name":"behind","port":%d}}}`, behindGroup, port)
}

// ServeHTTP answers a request that a server forwards, or one of the server itself for the resources of the group.
func (b *Behind) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, facts+"/")
	switch {
	case ok:
		now := b.rec.Now()
		b.rec.Add(&history.Check{Property: "rights", What: "a request to an aggregated server for the object of " + name, Server: -1, Call: now, Return: now, Wrong: misled(r.Header, name)})
		w.Header().Set("Content-Type", plainJSON)
		fmt.Fprintf(w, `{"apiVersion":"%s/v1","kind":"Fact","metadata":{"name":%q}}`, behindGroup, name)
	case r.URL.Path == behindVersion:
		w.Header().Set("Content-Type", plainJSON)
		fmt.Fprintf(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"%s/v1","resources":[{"name":"facts","singularName":"fact","kind":"Fact","namespaced":false,"verbs":["get"]}]}`, behindGroup)
	default:
		http.NotFound(w, r)
	}
}

// misled describes the fault in the headers of a forwarded request for the object of a user; "" if there is none.
func misled(h http.Header, user string) string {
	switch users := h.Values("X-Remote-User"); {
	case len(users) != 1 || users[0] != user:
		return fmt.Sprintf("it names the users %q", users)
	case user != "admin" && slices.Contains(h.Values("X-Remote-Group"), "system:masters"), h.Get("X-Remote-Extra-Scopes") != "":
		return "it has what the client claims of itself"
	case h.Get("Authorization") != "", h.Get("Impersonate-User") != "":
		return "it has the credentials of the client"
	}
	return ""
}

// aggregated grants users rights to objects of an aggregated server, and takes these away; and has its group be delegated to it, and not.
// Its requests claim to come from another user.
func (c *client) aggregated(ctx context.Context) {
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	if !c.made(ctx, admin, [2]string{"/api/v1/namespaces", `{"metadata":{"name":"behind"}}`}, [2]string{behindHome + "/services", `{"metadata":{"name":"behind"},"spec":{"type":"ExternalName","externalName":"localhost"}}`}) {
		return
	}
	delegated := func() bool { return c.made(ctx, admin, [2]string{apiServices, c.behind.delegation()}) }
	group := lever{"of a group whose APIService is gone", delegated, func(subject string) bool {
		return c.change(ctx, admin, subject, false, http.MethodDelete, behindService, "", http.StatusOK, http.StatusNotFound)
	}, []trial{{method: http.MethodGet, path: facts + "/admin"}}}
	c.pretends = true
	for turn := c.round; ctx.Err() == nil; turn++ {
		if turn%2 == 0 {
			if !c.pull(ctx, turn, &group, nil) {
				break
			}
		} else if !delegated() || !c.grant(ctx, admin, []way{behindWay(fmt.Sprintf("%s-%d", c.label(), turn))}, turn) {
			break
		}
	}
	c.tidy(ctx, behindService)
}

// behindWay returns the right of a user to the object of its name.
func behindWay(name string) way {
	get := func(as, path string) use { return use{as: as, method: http.MethodGet, path: path} }
	return way{
		name:  name,
		made:  [][2]string{{rbacPath + "clusterroles", named(name, "", behindGroup, "facts", `"get"`)}},
		give:  [2]string{rbacPath + "clusterrolebindings", boundTo(name, "ClusterRole", name, userSubject(name))},
		patch: [2]string{rbacPath + "clusterroles/" + name, `[{"op":"add","path":"/rules/0/resourceNames","value":["other"]}]`},
		uses:  []use{get(name, facts+"/"+name)},
		nevers: []use{get(name, facts+"/"+name+"-x"), get(name+"-x", facts+"/"+name), get(name, facts), get(name, behindVersion+"/fictions/"+name),
			{as: name, method: http.MethodPut, path: facts + "/" + name, body: "{}"}},
	}
}
