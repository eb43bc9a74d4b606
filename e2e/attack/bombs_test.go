package attack

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/e2e/harness"
)

// bomb is a request that costs much if it is believed, and the codes that are right. 0 is no answer: some end with a
// protocol error.
type bomb struct {
	name string
	call
	codes []int
}

// family are bombs for one decoder.
type family struct {
	name  string
	bombs []bomb
}

const (
	mine      = "/api/v1/namespaces/mallory/configmaps"
	limits    = "/api/v1/namespaces/mallory/limitranges"
	deploys   = "/apis/apps/v1/namespaces/mallory/deployments"
	endpoints = "/api/v1/namespaces/mallory/endpoints"
	crds      = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	policies  = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"

	asJSON     = "application/json"
	asYAML     = "application/yaml"
	asProtobuf = "application/vnd.kubernetes.protobuf"
	asCBOR     = "application/cbor"
	asPatch    = "application/json-patch+json"
	asMerge    = "application/merge-patch+json"
	asStrategy = "application/strategic-merge-patch+json"
	asApply    = "application/apply-patch+yaml"
)

func nested(begin, end string, n int) string {
	return strings.Repeat(begin, n) + strings.Repeat(end, n)
}

func list(item string, n int) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }

func post(path, contentType, body string) call {
	return call{method: "POST", path: path, contentType: contentType, body: body}
}

func patch(path, contentType, body string) call {
	return call{method: "PATCH", path: path, contentType: contentType, body: body}
}

func get(path string, headers ...string) call {
	return call{method: "GET", path: path, headers: headers}
}

// bombs are of harmless sizes: what they cost a server that believes them is a second, or a gigabyte.
func bombs(t *testing.T) []family {
	t.Helper()
	aliases := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		aliases += fmt.Sprintf("%c: &%c [%s]\n", c, c, list(fmt.Sprintf("*%c", c-1), 9))
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(bytes.Repeat([]byte(" "), 32<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var copies, fields, groups []string
	for i := range 60 {
		copies = append(copies, fmt.Sprintf(`{"op":"copy","from":"/data","path":"/data/k%d"}`, i))
	}
	for i := range 50_000 {
		fields = append(fields, fmt.Sprintf(`"k%d":""`, i))
	}
	for range 3000 {
		groups = append(groups, "Impersonate-Group", "g")
	}
	object := func(rest string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}` + rest + `}`
	}
	return []family{
		{"JSON", []bomb{
			{"deep lists", post(mine, asJSON, object(`,"x":`+nested("[", "]", 200_000))), []int{400}},
			{"deep objects", post(mine, asJSON, strings.Repeat(`{"a":`, 100_000)), []int{400}},
			{"large", post(mine, asJSON, object(`,"data":{"a":"`+strings.Repeat("x", 4<<20)+`"}`)), []int{413}},
			{"many small objects", post(endpoints, asJSON, `{"metadata":{"name":"x"},"subsets":[`+list("{}", 900_000)+`]}`), []int{413}},
			{"compressed", call{method: "POST", path: mine, body: zipped.String(), headers: []string{"Content-Encoding", "gzip"}}, []int{400, 415}},
			{"large quantity", post(limits, asJSON, `{"metadata":{"name":"q"},"spec":{"limits":[{"type":"Pod","max":{"cpu":"1e`+strings.Repeat("9", 1000)+`"}}]}}`), []int{400, 422}},
			{"long quantity", post(limits, asJSON, `{"metadata":{"name":"q2"},"spec":{"limits":[{"type":"Pod","max":{"cpu":"`+strings.Repeat("9", 1<<20)+`"}}]}}`), []int{201, 400, 422}},
			{"long field manager", post(mine+"?fieldManager="+strings.Repeat("a", 100_000), asJSON, object("")), []int{400, 422}},
		}},
		{"YAML", []bomb{
			{"deep", post(mine, asYAML, "a: "+nested("[", "]", 20_000)), []int{400}},
			{"aliases", post(mine, asYAML, aliases), []int{400}},
			{"many values", post(mine, asYAML, "a: ["+list("a", 500_000)+"]"), []int{400, 413}},
			{"aliases of large values", post(mine, asYAML, "a: &a "+strings.Repeat("x", 100_000)+"\nb: ["+list("*a", 10_000)+"]"), []int{400, 413}},
		}},
		{"Protobuf", []bomb{
			{"deep", post(crds, asProtobuf, deepDefinition(t)), []int{400}},
			{"many empty messages", post(endpoints, asProtobuf, enveloped(t, "v1", "Endpoints", bytes.Repeat([]byte{0x12, 0}, 1_400_000))), []int{413}},
			{"a length beyond the end", post(mine, asProtobuf, enveloped(t, "v1", "ConfigMap", []byte{0x12, 0xff, 0xff, 0xff, 0xff, 0x0f})), []int{400}},
			{"endless number", post(mine, asProtobuf, enveloped(t, "v1", "ConfigMap", bytes.Repeat([]byte{0xff}, 1<<20))), []int{400}},
		}},
		{"CBOR", []bomb{
			{"deep lists", post(mine, asCBOR, strings.Repeat("\x81", 200_000)+"\x00"), []int{400}},
			{"deep lists of unknown length", post(mine, asCBOR, nested("\x9f", "\xff", 200_000)), []int{400}},
			{"deep tags", post(mine, asCBOR, strings.Repeat("\xd9\xd9\xf7", 200_000)+"\xa0"), []int{400}},
			{"a list of 2^63", post(mine, asCBOR, "\x9b\x7f\xff\xff\xff\xff\xff\xff\xff"), []int{400}},
			{"a text of 2^40", post(mine, asCBOR, "\x7b\x00\x00\x01\x00\x00\x00\x00\x00"), []int{400}},
			{"a text of single bytes", post(mine, asCBOR, "\xa1\x41a\x5f"+strings.Repeat("\x41a", 1_000_000)+"\xff"), []int{400, 422}},
			{"many small maps", post(endpoints, asCBOR, "\xa1\x47subsets\x9f"+strings.Repeat("\xa0", 2_500_000)+"\xff"), []int{400, 413}},
		}},
		{"patches", []bomb{
			{"deep merge patch", patch(mine+"/c", asMerge, `{"x":`+nested(`{"a":`, "}", 50_000)+"}"), []int{400, 422}},
			{"deep strategic patch", patch(deploys+"/d", asStrategy, strings.Repeat(`{"spec":`, 50_000)+"1"+strings.Repeat("}", 50_000)), []int{400, 422, 500}},
			{"deep apply", patch(mine+"/c?fieldManager=m", asApply, `{"apiVersion":"v1","kind":"ConfigMap","x":`+nested("[", "]", 50_000)+"}"), []int{400, 500}},
			{"copies of copies", patch(mine+"/c", asPatch, "["+strings.Join(copies, ",")+"]"), []int{400, 413, 422}},
			{"many operations", patch(mine+"/c", asPatch, "["+list(`{"op":"test","path":"/kind","value":"ConfigMap"}`, 10_001)+"]"), []int{413}},
			{"many applied fields", patch(mine+"/c?fieldManager=m", asApply, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{`+strings.Join(fields, ",")+`}}`), []int{413}},
			{"long orders", patch(deploys+"/d", asStrategy, `{"spec":{"template":{"spec":{"$setElementOrder/containers":[`+list(`{"name":"a"}`, 200_000)+`]}}}}`), []int{200, 400, 413, 422}},
		}},
		{"queries and headers", []bomb{
			{"label selector", get(mine + "?labelSelector=" + strings.Repeat("a,", 100_000) + "a"), []int{200, 431}},
			{"set in a label selector", get(mine + "?labelSelector=a+in+(" + list("b", 200_000) + ")"), []int{200, 431}},
			{"field selector", get(mine + "?fieldSelector=" + list("metadata.name!=a", 20_000)), []int{200, 431}},
			{"path", get("/" + strings.Repeat("a/", 200_000)), []int{403, 431}},
			{"parameters", get(mine + "?" + strings.Repeat("a&", 200_000) + "limit=1"), []int{200, 431}},
			{"continue token", get(mine + "?continue=" + strings.Repeat("A", 500_000)), []int{400, 431}},
			{"name", get(mine + "/" + strings.Repeat("a", 500_000)), []int{404, 431}},
			{"accepted types", get(mine, "Accept", strings.Repeat("a/b;q=0.1,", 50_000)+asJSON), []int{406}},
			{"impersonated groups", get(mine, append(groups, "Impersonate-User", "u")...), []int{400}},
			{"protocols of a WebSocket", get(mine, "Sec-Websocket-Protocol", list("a", 200_000)), []int{200}},
		}},
		{"definitions", []bomb{
			{"deep schema", post(crds, asJSON, definition(strings.Repeat(`{"type":"object","properties":{"a":`, 20_000)+`{"type":"object"}`+strings.Repeat("}}", 20_000))), []int{400, 413, 422}},
			{"choices in choices", post(crds, asJSON, definition(strings.Repeat(`{"type":"object","anyOf":[{"required":["a"]},`, 5_000)+`{"type":"object"}`+strings.Repeat("]}", 5_000))), []int{400, 413, 422}},
			{"pattern", post(crds, asJSON, definition(`{"type":"object","properties":{"a":{"type":"string","pattern":"((a{0,90}){0,9}){0,9}(`+list("b{1,900}", 600)+`)"}}}`)), []int{422}},
			{"rule in rules", post(crds, asJSON, definition(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}},"x-kubernetes-validations":[{"rule":"self.a.all(b, self.a.all(c, self.a.all(d, self.a.all(e, b + c == d + e))))"}]}`)), []int{422}},
			{"long rule", post(crds, asJSON, definition(`{"type":"object","x-kubernetes-validations":[{"rule":"`+strings.Repeat("1 + ", 50_000)+`1 == 1"}]}`)), []int{400, 422}},
			{"deep rule", post(crds, asJSON, definition(`{"type":"object","x-kubernetes-validations":[{"rule":"`+nested("(", ")", 50_000)+`"}]}`)), []int{400, 422}},
			{"deep policy", post(policies, asJSON, policy("p", nested("[", "]", 5_000)+" == []")), []int{400, 422}},
			{"many macros", post(policies, asJSON, policy("p", strings.Repeat("[1].all(a, ", 4_000)+"true"+strings.Repeat(")", 4_000))), []int{400, 422}},
		}},
	}
}

// definition returns a CustomResourceDefinition with a schema.
func definition(schema string) string {
	return `{"metadata":{"name":"bombs.mallory.example"},"spec":{"group":"mallory.example","scope":"Namespaced","names":{"plural":"bombs","kind":"Bomb"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + schema + `}}]}}`
}

// policy returns a ValidatingAdmissionPolicy for ConfigMaps with an expression.
func policy(name, expression string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]},"validations":[{"expression":%q}]}}`, name, expression)
}

// enveloped returns a message as a body.
func enveloped(t *testing.T, version, kind string, message []byte) string {
	t.Helper()
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: version, Kind: kind}, Raw: message}
	data, err := u.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return "k8s\x00" + string(data)
}

// deepDefinition returns a CustomResourceDefinition whose schema is nested 12,000 times.
func deepDefinition(t *testing.T) string {
	t.Helper()
	schema := &apiextensionsv1.JSONSchemaProps{}
	for range 12_000 {
		schema = &apiextensionsv1.JSONSchemaProps{Not: schema}
	}
	d := apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schema}}},
	}}
	data, err := d.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return enveloped(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", data)
}

// explode sends bombs, as a user with the right to write in a namespace.
func (a *arena) explode(t *testing.T, list []bomb) {
	t.Helper()
	for path, body := range map[string]string{
		mine:    `{"metadata":{"name":"c"},"data":{"a":"` + strings.Repeat("x", 1000) + `"}}`,
		deploys: `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
	} {
		if code, answer := a.send(t, call{method: "POST", path: path, body: body, token: harness.AdminToken}); code != 201 && code != 409 {
			t.Fatalf("%s: %d %s", path, code, answer)
		}
	}
	var running sync.WaitGroup
	before := a.ProcessorTime(t)
	for client := range 2 {
		running.Go(func() {
			for range 2 {
				for _, b := range list {
					b.token = a.mallory
					if code, answer := a.send(t, b.call); !slices.Contains(b.codes, code) {
						t.Errorf("%s: %d, want one of %v: %.300s", b.name, code, b.codes, answer)
					} else if client == 0 {
						t.Logf("%s: %d %.100s", b.name, code, strings.ReplaceAll(answer, "\n", " "))
					}
				}
			}
		})
	}
	running.Wait()
	if took := a.ProcessorTime(t) - before; took > time.Duration(4*len(list))*time.Second { // of processors, also for the probe
		t.Errorf("%d requests took %v", 4*len(list), took)
	}
}

// costlyPolicy: an expression that is no longer than others and runs for minutes ends when it has taken its steps, and the write
// that it was to judge fails. Writes that it is not about go on.
func costlyPolicy(t *testing.T, a *arena) {
	const name = "mallory-costly"
	numbers := "[" + list("1", 100) + "]"
	expression := strings.Repeat(numbers+".all(a, ", 4) + "true" + strings.Repeat(")", 4)
	if code, answer := a.send(t, call{method: "POST", path: policies, body: policy(name, expression), token: a.mallory}); code != 201 {
		t.Fatalf("%d %s", code, answer)
	}
	binding := `{"metadata":{"name":"` + name + `"},"spec":{"policyName":"` + name + `","validationActions":["Deny"],"matchResources":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"mallory"}}}}}`
	if code, answer := a.send(t, call{method: "POST", path: policies[:strings.LastIndexByte(policies, '/')] + "/validatingadmissionpolicybindings", body: binding, token: a.mallory}); code != 201 {
		t.Fatalf("%d %s", code, answer)
	}
	refused, answer := 0, ""
	for i := 0; refused < 3; i++ {
		var code int
		if code, answer = a.send(t, call{method: "POST", path: mine, body: fmt.Sprintf(`{"metadata":{"name":"judged-%d"}}`, i), token: a.mallory}); code/100 != 2 {
			refused++
		} else if refused > 0 || i == 1000 {
			t.Fatalf("write %d: %d", i, code)
		}
	}
	if !strings.Contains(answer, "cost budget") && !strings.Contains(answer, "operation cancelled") {
		t.Errorf("refused with %s", answer)
	}
	a.admin(t, "POST", configMaps, `{"metadata":{"name":"not-judged"}}`)
	a.admin(t, "DELETE", policies+"/"+name, "")
}

// namesInMetrics: names that a client invents do not become series.
func namesInMetrics(t *testing.T, a *arena) {
	before := strings.Count(a.Get(t, "/metrics"), "\n")
	for i := range 300 {
		for _, path := range []string{"/apis/g%d.example/v1/things", "/api/v%d/pods", "/api/v1/r%d", "/api/v1/namespaces/n%d/pods", "/p%d", "/api/v1/namespaces/mallory/pods/p/s%d"} {
			c := call{method: "GET", path: fmt.Sprintf(path, i), token: a.mallory, headers: []string{"User-Agent", fmt.Sprintf("agent-%d", i)}}
			if i%10 == 0 {
				c.method = fmt.Sprintf("VERB%d", i)
			}
			a.send(t, c)
		}
	}
	metrics := a.Get(t, "/metrics")
	if n := strings.Count(metrics, "\n"); n > before+1500 { // histograms that did not exist before
		t.Errorf("1,800 requests for names that do not exist made %d lines of metrics more", n-before)
	}
	for _, invented := range []string{"g77.example", "agent-77", "n77", "VERB70", `"r77"`, `"s77"`} {
		if strings.Contains(metrics, invented) {
			t.Errorf("%s is in the metrics", invented)
		}
	}
}
