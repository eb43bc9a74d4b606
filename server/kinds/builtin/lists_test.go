package builtin_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rowlock/rowlock/e2e/recorded"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// The parameters of a walk of lists, from the test that counts its steps.
const (
	listSize  = "ROWLOCK_LIST_SIZE"  // how many items each list has; set in the process that walks
	listGates = "ROWLOCK_LIST_GATES" // "on": all feature gates and versions are, of the newest release
	listWalk  = "ROWLOCK_LIST_WALK"  // "all": each list at each place in each kind, with slices and libraries counted
)

// shortList is the number of items of a list the first time: enough for work per pair of items to
// exceed by far the work per item of all lists together.
const shortList = 120

// bounded are the files that compare items in pairs, but not more than a fixed number of them, and
// the sorting of the standard library, whose steps grow by leaps.
var bounded = []string{"/podspec/overlaps.go:", "/podspec/warnings.go:", "slices/zsort"} // maxCompared

// other is the file of the algorithm for lists that are too long for the usual one.
const other = "/rules/difference.go:"

// counted are the packages whose steps are counted.
const counted = "./server/kinds/...,./server/admission/...,./server/writes,./server/apply/...,./server/objects,./server/status,./authx/rbac"

// countedToo are counted besides in a walk of all lists: that compiles nearly everything anew.
const countedToo = ",./server/...,./authx/...,slices,maps,k8s.io/apimachinery/pkg/..."

// TestListsAreLinear makes requests with lists of a size and of twice that size, and compares how
// often each statement was run: no more than three times as often. It walks the Go types of all
// kinds, and has each list in a create, an update, a patch of each kind, an apply and a delete,
// together with admission plugins that compare it with lists of other objects. How often a statement
// runs is read from the compiler's coverage counters, so the result depends on no clock.
func TestListsAreLinear(t *testing.T) {
	if size := os.Getenv(listSize); size != "" {
		n, err := strconv.Atoi(size)
		if err != nil {
			t.Fatal(err)
		}
		walkLists(t, n, os.Getenv(listGates) == "on", os.Getenv(listWalk) == "all")
		return
	}
	binary := countingBinary(t)
	for _, gates := range []string{"off", "on"} {
		var group sync.WaitGroup
		var counts [2]map[string]int
		var faults [2]error
		for i := range counts {
			group.Go(func() { counts[i], faults[i] = count(t, binary, (i+1)*shortList, gates) })
		}
		group.Wait()
		for _, err := range faults {
			if err != nil {
				t.Fatal(err)
			}
		}
		reached := 0
		for block, once := range counts[0] {
			twice := counts[1][block]
			if once >= shortList {
				reached++
			}
			among := func(file string) bool { return strings.Contains(block, file) }
			if once == 0 && among(other) {
				continue
			}
			if twice > 3*once && twice-once > shortList*shortList/2 && !slices.ContainsFunc(bounded, among) {
				t.Errorf("feature gates %s: with lists of %d items %s runs %d times, and with %d items %d times", gates, shortList, block, once, 2*shortList, twice)
			}
		}
		if reached < 300 {
			t.Errorf("feature gates %s: only %d statements ran once for each item", gates, reached)
		}
	}
}

// countingBinary returns this test, compiled with counters: itself, where e2e/cover.sh did so.
func countingBinary(t *testing.T) string {
	t.Helper()
	all := os.Getenv(listWalk) == "all"
	if testing.CoverMode() == "count" && !all {
		binary, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		return binary
	}
	packages := counted
	if all {
		packages += countedToo
	}
	binary := filepath.Join(t.TempDir(), "counting.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-covermode=count", "-coverpkg="+packages, "-o", binary, "./server/kinds/builtin")
	build.Dir = "../../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

// count returns how often each statement runs in a walk of lists of n items.
func count(t *testing.T, binary string, n int, gates string) (map[string]int, error) {
	profile := filepath.Join(t.TempDir(), fmt.Sprintf("%s-%d", gates, n))
	walk := exec.CommandContext(t.Context(), binary, "-test.run=^TestListsAreLinear$", "-test.v", "-test.coverprofile="+profile)
	walk.Env = append(os.Environ(), listSize+"="+strconv.Itoa(n), listGates+"="+gates, "GOCOVERDIR=")
	out, err := walk.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("lists of %d items: %w\n%s", n, err, out)
	}
	t.Logf("%s", out)
	file, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	counts := map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		block, rest, _ := strings.Cut(lines.Text(), " ")
		_, times, ok := strings.Cut(rest, " ")
		if !ok || strings.HasPrefix(block, "mode:") {
			continue
		}
		c, err := strconv.Atoi(times)
		if err != nil {
			return nil, err
		}
		counts[block] += c
	}
	return counts, nil
}

// walkLists makes the requests.
func walkLists(t *testing.T, n int, on, all bool) {
	var flags []string
	if on {
		flags = []string{"--feature-gates=AllAlpha=true,AllBeta=true", "--runtime-config=api/all=true"}
		if !all {
			flags = append(flags, "--emulated-version="+release.Newest.String())
		}
	}
	var catalogue *kinds.Catalogue
	// A walk of all lists takes longer than history is usually kept: how much of it is compacted would count.
	kept := servertest.On(storetest.NewShared().Open(), sqlstore.Config{Retention: 24 * time.Hour, LogRetention: 24 * time.Hour})
	s := servertest.Start(t, servertest.Complete(t, flags...), kept, servertest.Idle, func(c *server.Config) {
		catalogue = c.Catalogue
		c.Admission.Enable = []string{
			"NamespaceAutoProvision", "LimitPodHardAntiAffinityTopology", "AlwaysPullImages", "PodNodeSelector", "PodTolerationRestriction",
			"ExtendedResourceToleration", "OwnerReferencesPermissionEnforcement", "DenyServiceExternalIPs", "NodeRestriction",
		}
	})
	w := &lists{Server: s, t: t, n: n, on: on, all: all, bodies: bodies(t), seen: map[string]bool{}, statuses: map[int]int{}}
	w.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"ns"}}`)
	w.Must("POST", "/api/v1/namespaces/ns/serviceaccounts", `{"metadata":{"name":"default"}}`)
	resources := slices.SortedFunc(slices.Values(catalogue.All()), func(a, b *kinds.Resource) int {
		return strings.Compare(a.GVR().String(), b.GVR().String())
	})
	for _, r := range resources {
		if r.New != nil && r.Storage != nil && r.Schema == nil && !r.Off && slices.Contains(r.Verbs, "create") && r.Storage.GVK == r.GVK() {
			w.resource(r)
		}
	}
	w.pairs()
	t.Logf("%d lists, answers by status: %v", len(w.seen), w.statuses)
	if len(w.seen) < 50 || w.statuses[http.StatusOK] < len(w.seen)/2 || w.statuses[http.StatusCreated] == 0 {
		t.Error("those are too few")
	}
}

// lists walks lists.
type lists struct {
	*servertest.Server
	t        *testing.T
	n        int
	on, all  bool
	bodies   map[string]map[string]any // by the path of a collection
	seen     map[string]bool
	statuses map[int]int
}

// place locates a list in an object: names of fields, and "" for the first item of a list.
type place struct {
	path  []string
	kind  reflect.Type // of the list, or the map
	owner string       // the type that has it
	// of each step of the path
	kinds []reflect.Type
}

// places finds the lists and maps in a type.
func places(t reflect.Type, at place, open []reflect.Type, found func(place, string)) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(open, t) || leaf(t) {
		return
	}
	open = append(open[:len(open):len(open)], t)
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() || name == "managedFields" {
			continue
		}
		next := at
		if name != "" {
			next = at.step(name, f.Type)
		}
		switch k := f.Type; {
		case k.Kind() == reflect.Slice && k.Elem().Kind() != reflect.Uint8:
			next.kind, next.owner = k, t.String()
			found(next, t.String()+"."+f.Name)
			places(k.Elem(), next.step("", k.Elem()), open, found)
		case k.Kind() == reflect.Map:
			next.kind, next.owner = k, t.String()
			found(next, t.String()+"."+f.Name)
		default:
			places(k, next, open, found)
		}
	}
}

func (p place) step(name string, kind reflect.Type) place {
	p.path = append(p.path[:len(p.path):len(p.path)], name)
	p.kinds = append(p.kinds[:len(p.kinds):len(p.kinds)], kind)
	return p
}

// leaf reports whether a type is written as one value.
func leaf(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration](), reflect.TypeFor[resource.Quantity](),
		reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1]():
		return true
	}
	return false
}

// value returns a value of a type, another one for each i; nil for types that are left out.
func value(t reflect.Type, i int) any {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return "2026-01-01T00:00:00Z"
	case reflect.TypeFor[metav1.MicroTime]():
		return "2026-01-01T00:00:00.000000Z"
	case reflect.TypeFor[metav1.Duration]():
		return "1s"
	case reflect.TypeFor[resource.Quantity]():
		return strconv.Itoa(i + 1)
	case reflect.TypeFor[intstr.IntOrString]():
		return i + 1
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1]():
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.String:
		if n := t.Name(); n == "string" || n == "UID" || strings.HasSuffix(n, "Name") || strings.HasSuffix(n, "Type") {
			return fmt.Sprintf("x%03d.example.com", i)
		}
		return nil // one of a few words
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		return i%30000 + 1001 // beyond the bounds of weights and the like, however many there are
	case reflect.Struct:
		out := map[string]any{}
		for k := range t.NumField() {
			f := t.Field(k)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" || !f.IsExported() {
				continue
			}
			v := value(f.Type, i)
			if inner, ok := v.(map[string]any); ok && f.Anonymous && name == "" {
				for k, v := range inner {
					out[k] = v
				}
			} else if v != nil && name != "" {
				out[name] = v
			}
		}
		return out
	}
	return nil
}

// items returns the items of a list, from one on. They are like the first one that is there, but for
// their texts and numbers; with same they are all alike.
func items(kind reflect.Type, have any, from, n int, same bool) any {
	if kind.Kind() == reflect.Map {
		out := map[string]any{}
		for i := range n {
			v := value(kind.Elem(), from+i)
			if v == nil {
				v = map[string]any{}
			}
			if kind.Elem().Kind() == reflect.String {
				v = "v"
			}
			if kind.Elem().Kind() == reflect.Slice {
				v = ""
				if kind.Elem().Elem().Kind() != reflect.Uint8 {
					v = []any{}
				}
			}
			out[fmt.Sprintf("x%03d.example.com/y", from+i)] = v
		}
		return out
	}
	elem := kind.Elem()
	for elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	var first any
	if list, ok := have.([]any); ok && len(list) > 0 {
		first = list[0]
	}
	out := make([]any, n)
	for i := range out {
		k := from + i
		if same {
			k = from
		}
		switch first := first.(type) {
		case map[string]any:
			out[i] = varied(first, elem, k)
		default:
			if out[i] = value(elem, k); out[i] == nil {
				out[i] = fmt.Sprintf("x%03d.example.com", k)
			}
		}
	}
	return out
}

// varied returns an item with other texts that are no words of the API, and other numbers.
func varied(first map[string]any, t reflect.Type, i int) map[string]any {
	out := map[string]any{}
	for k, v := range first {
		out[k] = v
		f, ok := fieldOf(t, k)
		if !ok || i == 0 {
			continue
		}
		for f.Kind() == reflect.Pointer {
			f = f.Elem()
		}
		switch v := v.(type) {
		case string:
			if f.Name() == "string" || f.Name() == "UID" {
				out[k] = fmt.Sprintf("%s-%03d", v, i) // all of one length: names have a longest one
			}
		case float64:
			out[k] = int(v) + i
		}
	}
	return out
}

func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		json, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if json == name {
			return f.Type, true
		}
		if f.Anonymous && json == "" {
			if found, ok := fieldOf(f.Type, name); ok {
				return found, true
			}
		}
	}
	return nil, false
}

// get and put find and set the value at a path. put creates missing parents.
func get(v any, path []string) any {
	for _, name := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			if name != "" || len(at) == 0 {
				return nil
			}
			v = at[0]
		default:
			return nil
		}
	}
	return v
}

func put(v any, p place, set any) any {
	if len(p.path) == 0 {
		return set
	}
	rest := place{path: p.path[1:], kinds: p.kinds[1:]}
	if p.path[0] == "" {
		list, _ := v.([]any)
		if len(list) == 0 {
			list = []any{value(p.kinds[0], 0)}
		}
		list[0] = put(list[0], rest, set)
		return list
	}
	m, ok := v.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	m[p.path[0]] = put(m[p.path[0]], rest, set)
	return m
}

// resource makes requests with each list of a kind.
func (w *lists) resource(r *kinds.Resource) {
	places(reflect.TypeOf(r.New()), place{}, nil, func(p place, field string) {
		if w.all {
			field = r.GVK().String() + " " + strings.Join(p.path, ".")
		}
		if !w.seen[field] && w.turn(r, field) {
			w.seen[field] = true
			w.list(r, false, p)
			if w.all {
				w.list(r, true, p)
			}
		}
	})
	w.together(r)
}

// together makes requests in which all lists of a part of an object are long, with those of what it
// is a part of: one may be compared with another. They are filled from the inside, and name the same.
func (w *lists) together(r *kinds.Resource) {
	parts, order := map[string][]place{}, []string{}
	places(reflect.TypeOf(r.New()), place{}, nil, func(p place, _ string) {
		in := strings.Join(p.path[:len(p.path)-1], ".")
		if parts[in] == nil {
			order = append(order, in)
		}
		parts[in] = append(parts[in], p)
	})
	for _, in := range order {
		if len(parts[in]) < 2 && !w.all {
			continue
		}
		field := "all of " + r.GVK().String() + " " + in
		if !w.all {
			field = "all of " + parts[in][0].owner
		}
		if w.seen[field] || !w.turn(r, field) {
			continue
		}
		w.seen[field] = true
		all := slices.Clone(parts[in])
		for above := in; above != ""; {
			above = above[:max(strings.LastIndexByte(above, '.'), 0)]
			for _, p := range parts[above] {
				if at := strings.Join(p.path, "."); !strings.HasPrefix(in+".", at+".") {
					all = append(all, p)
				}
			}
			if !w.all && len(parts[above]) > 1 {
				break
			}
		}
		w.list(r, false, all...)
	}
}

// turn reports whether a list is one to be walked with these gates. Where not all lists are walked with
// gates on and off, each is with one of the two.
func (w *lists) turn(r *kinds.Resource, field string) bool {
	return w.all || w.on == (hash(field)%4 != 0 || r.Gate != "" || strings.Contains(r.Version, "a"))
}

func hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // it takes everything
	return h.Sum32()
}

func (w *lists) list(r *kinds.Resource, same bool, places ...place) {
	collection, namespace := w.collection(r), ""
	if r.Namespaced {
		namespace = "ns"
	}
	name := "x"
	body := func(from int) string {
		obj, _ := clone(w.bodies[collection]).(map[string]any)
		if obj == nil {
			obj = map[string]any{}
		}
		meta, _ := obj["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		if have, ok := meta["name"].(string); ok {
			name = have
		}
		delete(meta, "generateName")
		meta["name"], meta["namespace"] = name, namespace
		if namespace == "" {
			delete(meta, "namespace")
		}
		obj["metadata"], obj["apiVersion"], obj["kind"] = meta, r.APIVersion(), r.Kind
		for _, p := range places {
			put(obj, p, items(p.kind, get(obj, p.path), from, w.n, same))
		}
		return text(w.t, obj)
	}
	first, second := body(0), body(1)
	object := collection + "/" + name
	change := map[string]any{"kind": r.Kind, "apiVersion": r.APIVersion()}
	for _, p := range places {
		put(change, p, get(parsed(w.t, second), p.path))
	}
	part := text(w.t, change)
	w.do("POST", collection+"?dryRun=All", first)
	stored, _ := parsed(w.t, first).(map[string]any)
	meta := stored["metadata"].(map[string]any)
	meta["uid"], meta["creationTimestamp"] = "1234", "2026-01-01T00:00:00Z"
	if strings.Contains(r.Group, "admissionregistration") || r.Plural == "customresourcedefinitions" || r.Plural == "apiservices" || r.Plural == "flowschemas" {
		// Stored objects would take effect.
		return
	}
	w.Put(r.Storage.Key, namespace, name, text(w.t, stored))
	w.do("PUT", object+"?dryRun=All", second)
	operation := text(w.t, []map[string]any{{"op": "add", "path": "/metadata/labels", "value": map[string]any{"a": "b"}}})
	others := []func(){
		func() { w.do("PATCH", object+"?dryRun=All", part, "Content-Type", "application/merge-patch+json") },
		func() {
			w.do("PATCH", object+"?dryRun=All", part, "Content-Type", "application/strategic-merge-patch+json")
		},
		func() { w.do("PATCH", object+"?dryRun=All", operation, "Content-Type", "application/json-patch+json") },
		func() {
			w.do("PATCH", object+"?dryRun=All&fieldManager=a&force=true", second, "Content-Type", "application/apply-patch+yaml")
		},
		func() {
			for i := range r.Subresources {
				if sub := &r.Subresources[i]; sub.Update != nil && slices.Contains(sub.Verbs, "update") {
					w.do("PUT", object+"/"+sub.Name+"?dryRun=All", second)
				}
			}
			w.do("DELETE", object+"?dryRun=All", "")
		},
	}
	for i, other := range others { // what they do with a list has less to do with which it is: they take turns
		if w.all || i == int(hash(object+strings.Join(places[0].path, "."))/4)%len(others) {
			other()
		}
	}
	w.Remove(r.Storage.Key, namespace, name)
}

func (w *lists) collection(r *kinds.Resource) string {
	path := "/apis/" + r.APIVersion()
	if r.Group == "" {
		path = "/api/v1"
	}
	if r.Namespaced {
		path += "/namespaces/ns"
	}
	return path + "/" + r.Plural
}

// internalErrors are in the answers with 500 that a stock server gives to the same requests.
var internalErrors = []string{
	"failed to create typed patch object", "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist",
	"merging an object in json but data type is not struct, instead is: map", // a strategic merge patch of a map of lists
}

func (w *lists) do(method, path, body string, header ...string) {
	answer := w.Do(method, path, body, header...)
	w.statuses[answer.Code]++
	fault := answer.Code == http.StatusInternalServerError && !slices.ContainsFunc(internalErrors, func(text string) bool { return strings.Contains(answer.Body.String(), text) })
	if fault || answer.Code == http.StatusGatewayTimeout || answer.Code == http.StatusRequestEntityTooLarge {
		w.t.Errorf("%s %s: %d %.300s", method, path, answer.Code, answer.Body)
	}
}

// pairs combines lists of one object with lists of another.
func (w *lists) pairs() {
	list := func(format string) string {
		parts := make([]string, w.n)
		for i := range parts {
			parts[i] = fmt.Sprintf(format, i)
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	pod := func(rest string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"pairs"},"spec":{` + rest + `}}`
	}
	const dry = "?dryRun=All"
	tolerations := list(`{"key":"k%d","operator":"Exists"}`)
	others := list(`{"key":"l%d","operator":"Exists","effect":"NoExecute","tolerationSeconds":3}`)
	w.Must("POST", "/apis/node.k8s.io/v1/runtimeclasses", `{"metadata":{"name":"rc"},"handler":"h","scheduling":{"tolerations":`+others+`}}`)
	quoted, err := json.Marshal(tolerations[:len(tolerations)-1] + `,{"key":"node.kubernetes.io/not-ready","operator":"Exists"},{"key":"node.kubernetes.io/unreachable","operator":"Exists"}]`)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"pairs","annotations":{"scheduler.alpha.kubernetes.io/tolerationsWhitelist":`+string(quoted)+`}}}`)
	w.Must("POST", "/api/v1/namespaces/pairs/serviceaccounts", `{"metadata":{"name":"default"}}`)
	w.Put("configmaps", "ns", "f", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"f","namespace":"ns","uid":"1","finalizers":`+list(`"example.com/f%d"`)+`}}`)
	w.do("DELETE", "/api/v1/namespaces/ns/configmaps/f?propagationPolicy=Foreground&dryRun=All", "")
	const containers = `"containers":[{"name":"c","image":"i"}],`
	for _, ns := range []string{"ns", "pairs"} {
		w.do("POST", "/api/v1/namespaces/"+ns+"/pods"+dry, strings.Replace(pod(containers+`"runtimeClassName":"rc","tolerations":`+tolerations), "pairs", ns, 1))
		w.do("POST", "/api/v1/namespaces/"+ns+"/pods"+dry, strings.Replace(pod(containers+`"tolerations":`+tolerations), "pairs", ns, 1))
	}
	w.do("POST", "/api/v1/namespaces/ns/pods"+dry, strings.Replace(pod(`"resourceClaims":`+list(`{"name":"r%d","resourceClaimName":"x"}`)+
		`,"containers":[{"name":"c","image":"i","resources":{"claims":`+list(`{"name":"s%d"}`)+`}},{"name":"d","image":"i","resources":{"claims":`+list(`{"name":"r0","request":"q%d"}`)+`}}]`), "pairs", "ns", 1))
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = clone(item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = clone(v[i])
		}
		return out
	}
	return v
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func parsed(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// bodies are objects that a stock server took, by the path of their collection in namespace ns: of
// each kind the longest of middling length.
func bodies(t *testing.T) map[string]map[string]any {
	t.Helper()
	scenarios, err := recorded.LoadAll("../../../e2e/testdata/parity/*.json")
	if err != nil {
		t.Fatal(err)
	}
	created := regexp.MustCompile(`^POST (/api/v1|/apis/[^/]+/[^/]+)(/namespaces/[^/]+)?(/[a-z]+)(\?.*)?$`)
	unknown := regexp.MustCompile(`\$\{[^}]*\}`)
	out, lengths := map[string]map[string]any{}, map[string]int{}
	for _, scenario := range scenarios {
		for _, step := range scenario.Steps {
			match := created.FindStringSubmatch(step.Do)
			if match == nil || step.Want.Status != 201 || step.Type != "" || len(step.Body) > 6000 {
				continue
			}
			if match[2] != "" {
				match[2] = "/namespaces/ns"
			}
			path := match[1] + match[2] + match[3]
			var body map[string]any
			if json.Unmarshal(unknown.ReplaceAll(step.Body, []byte("ns")), &body) == nil && len(step.Body) > lengths[path] {
				out[path], lengths[path] = body, len(step.Body)
			}
		}
	}
	return out
}
