package verbs_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/sqlstore"
)

// decides answers every question alike.
type decides struct {
	decision authx.Decision
	reason   string
	err      error
}

func (d decides) Authorize(context.Context, *authx.Attributes) (authx.Decision, string, error) {
	return d.decision, d.reason, d.err
}

// TestUnsafeDelete deletes with the option to ignore what cannot be read.
func TestUnsafeDelete(t *testing.T) {
	f := newFixture(t)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"c"}}`)
	key := sqlstore.Key{Resource: "configmaps", Namespace: "a", Name: "broken"}
	if _, err := f.store.Write(t.Context(), sqlstore.Op{Verb: sqlstore.Create, Key: key, Value: []byte(`{"kind":`)}); err != nil {
		t.Fatal(err)
	}
	const (
		unsafe    = `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`
		forbidden = `configmaps "broken" is forbidden: `
		invalid   = "ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: "
	)
	may := decides{decision: authx.Allow}
	for _, c := range []struct {
		name    string
		off     bool
		says    authx.Authorizer
		url     string
		body    string
		code    int
		message string
	}{
		{"the gate is off", true, may, "/broken", unsafe, 500, "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /registry/configmaps/a/broken, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision="},
		{"no option", false, may, "/broken", `{}`, 500, "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /registry/configmaps/a/broken, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision="},
		{"nobody to ask", false, nil, "/broken", unsafe, 500, "Internal error occurred: no authorizer provided, unable to authorize unsafe delete"},
		{"not permitted", false, decides{reason: "no rule"}, "/broken", unsafe, 403, forbidden + `not permitted to do "unsafe-delete-ignore-read-errors", reason: no rule`},
		{"undecided", false, decides{err: errors.New("down")}, "/broken", unsafe, 403, forbidden + `error while checking permission for "unsafe-delete-ignore-read-errors", down`},
		{"other options", false, may, "/broken", `{"ignoreStoreReadErrorWithClusterBreakingPotential":true,"dryRun":["All"]}`, 422,
			`DeleteOptions.meta.k8s.io "" is invalid: ` + invalid + "cannot be set together with .dryRun"},
		{"a collection", false, may, "", unsafe, 422,
			`DeleteOptions.meta.k8s.io "" is invalid: ` + invalid + "is not allowed with DELETECOLLECTION, try again after removing the option"},
		{"a readable object", false, may, "/c", unsafe, 422,
			`configmaps "c" is invalid: ` + invalid + "is exclusively used to delete corrupt object(s), try again by removing this option"},
		{"no object", false, may, "/none", unsafe, 404, `configmaps "none" not found`},
		{"an unreadable object", false, may, "/broken", unsafe, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.h.Feature = func(gate string) bool { return gate == "AllowUnsafeMalformedObjectDeletion" && !c.off }
			f.h.Writes.Authorizer = c.says
			w := f.do("DELETE", configmaps+c.url, c.body)
			var got struct {
				Message string
				Details struct{ Name, Kind string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if w.Code != c.code || !strings.HasPrefix(got.Message, c.message) {
				t.Errorf("%d %s\nwant %d %s", w.Code, got.Message, c.code, c.message)
			}
			if c.code == 200 && (got.Details.Name != "broken" || got.Details.Kind != "ConfigMap") {
				t.Errorf("the answer is about %+v", got.Details)
			}
		})
	}
	f.want(404, "GET", configmaps+"/broken", "")
	f.want(200, "GET", configmaps+"/c", "")
}
