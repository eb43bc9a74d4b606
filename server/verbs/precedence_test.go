package verbs_test

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// TestPrecedence holds requests with two faults against the one that the answer has to name.
func TestPrecedence(t *testing.T) {
	f := newFixture(t)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"c"}}`)
	namespace := f.want(200, "GET", "/api/v1/namespaces/a", "")
	uid, version := at(namespace, "metadata.uid"), at(namespace, "metadata.resourceVersion")
	deployment := f.want(201, "POST", "/apis/apps/v1/namespaces/a/deployments", `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	const (
		otherNamespace = "the namespace of the provided object does not match the namespace sent on the request"
		unknownForm    = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
		badDryRun      = `Options.meta.k8s.io "" is invalid: dryRun: Unsupported value: []string{"x"}: supported values: "All"`
		leases         = "/apis/coordination.k8s.io/v1/namespaces/a/leases"
		scale          = "/apis/apps/v1/namespaces/a/deployments/d/scale"
	)
	for _, c := range []struct {
		name, method, url, body, form string
		code                          int
		message                       string
	}{
		{"namespace before name", "PUT", configmaps + "/c", `{"metadata":{"name":"d","namespace":"b"}}`, "", 400, otherNamespace},
		{"namespace before no name", "PUT", configmaps + "/c", `{"metadata":{"namespace":"b"}}`, "", 400, otherNamespace},
		{"namespace before name in a patch", "PATCH", configmaps + "/c", `{"metadata":{"name":"d","namespace":"b"}}`, merge, 400, otherNamespace},
		{"namespace before name in a scale", "PUT", scale, `{"metadata":{"name":"e","namespace":"b"}}`, "", 400, otherNamespace},
		{"namespace before admission", "POST", "/api/v1/namespaces/none/configmaps", `{"metadata":{"name":"c","namespace":"b"}}`, "", 400, otherNamespace},
		{"form before options of a POST", "POST", configmaps + "?dryRun=x", `{}`, "text/plain", 415, unknownForm},
		{"options before form of a PUT", "PUT", configmaps + "/c?dryRun=x", `{}`, "text/plain", 422, "Update" + badDryRun},
		{"options before form of a scale", "PUT", scale + "?dryRun=x", `{}`, "text/plain", 422, "Update" + badDryRun},
		{"options before body", "POST", configmaps + "?dryRun=x", `{`, "", 422, "Create" + badDryRun},
		{"uid before absence", "PUT", configmaps + "/none", `{"metadata":{"name":"none","uid":"1"}}`, "", 409,
			`Operation cannot be fulfilled on configmaps "none": StorageError: invalid object, Code: 4, Key: /registry/configmaps/a/none, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: 1, UID in object meta: `},
		{"uid of what is made", "PUT", leases + "/none", `{"metadata":{"name":"none","uid":"1"}}`, "", 409,
			`Operation cannot be fulfilled on leases.coordination.k8s.io "none": StorageError: invalid object, Code: 4, Key: /registry/leases/a/none, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: 1, UID in object meta: `},
		{"uid of a scale", "PUT", scale, `{"metadata":{"name":"d","uid":"1"}}`, "", 409,
			`Operation cannot be fulfilled on deployments.apps "d": StorageError: invalid object, Code: 4, Key: /registry/deployments/a/d, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: 1, UID in object meta: ` + at(deployment, "metadata.uid")},
		{"uid that a patch gives a scale", "PATCH", scale, `{"metadata":{"uid":"1"}}`, merge, 409,
			`Operation cannot be fulfilled on deployments/scale.apps "d": Precondition failed: UID in precondition: 1, UID in object meta: ` + at(deployment, "metadata.uid")},
		{"version of what is made", "PUT", leases + "/none", `{"metadata":{"name":"none","resourceVersion":"abc"}}`, "", 500, `strconv.ParseUint: parsing "abc": invalid syntax`},
		{"version of what is made by POST", "POST", configmaps, `{"metadata":{"name":"none","resourceVersion":"7"}}`, "", 500, "resourceVersion should not be set on objects to be created"},
		{"body of another kind that is none", "POST", configmaps, `{"apiVersion":"v1","kind":"Secret","data":{"a":"!"}}`, "", 400,
			`Secret in version "v1" cannot be handled as a ConfigMap: illegal base64 data at input byte 0`},
		{"options of a delete that are an object", "DELETE", configmaps + "/c", `{"apiVersion":"v1","kind":"Secret"}`, "", 500,
			`no kind "Secret" is registered for version "v1" in scheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"`},
		{"options of a delete of some version", "DELETE", configmaps + "/c", `{"kind":"Nothing"}`, "", 500,
			`no kind "Nothing" is registered for version "meta.k8s.io/v1" in scheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"`},
		{"options of a delete that are others", "DELETE", configmaps + "/c", `{"apiVersion":"v1","kind":"UpdateOptions"}`, "", 500,
			`converting (v1.UpdateOptions) to (v1.DeleteOptions): unknown conversion`},
		{"namespace with another uid", "DELETE", "/api/v1/namespaces/a", `{"preconditions":{"uid":"1","resourceVersion":"2"}}`, "", 409,
			`Operation cannot be fulfilled on namespaces "a": Precondition failed: UID in precondition: 1, UID in object meta: ` + uid},
		{"namespace of another version", "DELETE", "/api/v1/namespaces/a", `{"preconditions":{"resourceVersion":"2000"}}`, "", 409,
			`Operation cannot be fulfilled on namespaces "a": Precondition failed: ResourceVersion in precondition: 2000, ResourceVersion in object meta: ` + version},
		{"options of a collection that are an object", "DELETE", configmaps, `{"apiVersion":"v1","kind":"Secret"}`, "", 500,
			`no kind "Secret" is registered for version "v1" in scheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			headers := []string{}
			if c.form != "" {
				headers = append(headers, "Content-Type", c.form)
			}
			w := f.do(c.method, c.url, c.body, headers...)
			var got struct{ Message string }
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if w.Code != c.code || got.Message != c.message {
				t.Errorf("%d %s\nwant %d %s", w.Code, got.Message, c.code, c.message)
			}
		})
	}
}

// TestDryRunKeepsVersion: the store alone refuses a version on a new object, and a dry
// run does not come that far.
func TestDryRunKeepsVersion(t *testing.T) {
	f := newFixture(t)
	for _, version := range []string{"7", "abc"} {
		got := f.want(201, "POST", configmaps+"?dryRun=All", `{"metadata":{"name":"c","resourceVersion":"`+version+`"}}`)
		if v := at(got, "metadata.resourceVersion"); v != version {
			t.Errorf("the version %q became %q", version, v)
		}
	}
	f.want(404, "GET", configmaps+"/c", "")
	f.want(201, "POST", configmaps, `{"metadata":{"name":"c","resourceVersion":"abc"}}`)
}

// TestBodyCutShort: a client that stops before it has sent its Content-Length gets an error about that.
func TestBodyCutShort(t *testing.T) {
	f := newFixture(t)
	r := httptest.NewRequest("POST", configmaps, iotest.ErrReader(io.ErrUnexpectedEOF))
	for _, length := range []int64{-1, 100} {
		r.ContentLength = length
		w := f.serve(r)
		if want := `"message":"unexpected EOF","code":500}`; w.Code != 500 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}
