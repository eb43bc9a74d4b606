package server_test

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/kinds"
)

// form is a kind of request, and its permitted effects for users with the right.
type form struct {
	name, method, path, as string // as is the media type of the body
	body                   func() string
	accept                 string

	needs   []need
	further []need   // without which it is a 404
	shows   []string // "a/x": what the answer may show
	does    []string // "update a/x": what may become of the store; "create a/" is any name
	must    bool     // something has to become of it
	stream  bool     // the answer does not end by itself
}

// need is a right that a request takes, on the resource or one of its subresources.
type need struct{ verb, resource, name string }

const (
	inJSON     = "application/json"
	inYAML     = "application/yaml"
	inProtobuf = "application/vnd.kubernetes.protobuf"
	asTable    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asPartial  = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	asPartials = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	jsonPatch  = "application/json-patch+json"
	mergePatch = "application/merge-patch+json"
	strategic  = "application/strategic-merge-patch+json"
	applyPatch = "application/apply-patch+yaml"
)

func text(s string) func() string { return func() string { return s } }

// asker makes the forms of one resource.
type asker struct {
	c     *cluster
	r     *kinds.Resource
	x     string // the name of the object that is there
	fresh string // of one that is not
	home  string // the namespace, with a slash
	all   string // the path of the collection
	forms []form
}

func (a *asker) add(f form) {
	if f.body == nil {
		f.body = text("")
	}
	a.forms = append(a.forms, f)
}

func formsOf(c *cluster, r *kinds.Resource) []form {
	a := &asker{c: c, r: r, x: named(r, "x"), fresh: named(r, "new"), all: collection(r, "a")}
	if r.Namespaced {
		a.home = "a"
	}
	a.home += "/"
	a.reads()
	a.watches()
	a.creates()
	a.updates()
	a.deletes()
	for i := range r.Subresources {
		a.part(&r.Subresources[i])
	}
	a.strange()
	return a.forms
}

func (a *asker) need(verb, name string) []need { return []need{{verb, a.r.Plural, name}} }

func (a *asker) reads() {
	x, xy := []string{a.home + a.x}, []string{a.home + a.x, a.home + named(a.r, "y")}
	everywhere := xy
	if a.r.Namespaced {
		everywhere = append(slices.Clone(xy), "b/"+a.x)
	}
	for _, accept := range []string{inJSON, inYAML, inProtobuf, asTable, asPartial} {
		a.add(form{name: "get", method: "GET", path: a.all + "/" + a.x, accept: accept, needs: a.need("get", a.x), shows: x})
	}
	for _, q := range []string{"?resourceVersion=0", "?resourceVersion=1", "?pretty=true", "?fieldSelector=metadata.name%3Dy", "?watch=false", "?watch=0"} {
		a.add(form{name: "get", method: "GET", path: a.all + "/" + a.x + q, needs: a.need("get", a.x), shows: x})
	}
	a.add(form{name: "head", method: "HEAD", path: a.all + "/" + a.x, needs: a.need("get", a.x), shows: x})
	a.add(form{name: "head of all", method: "HEAD", path: a.all, needs: a.need("list", ""), shows: xy})
	for _, accept := range []string{inJSON, inYAML, inProtobuf, asTable, asPartials} {
		a.add(form{name: "list", method: "GET", path: a.all, accept: accept, needs: a.need("list", ""), shows: xy})
	}
	for _, q := range []string{
		"?limit=1", "?resourceVersion=0", "?resourceVersion=0&resourceVersionMatch=NotOlderThan", "?labelSelector=none%21%3Dx", "?fieldSelector=metadata.name%21%3Dx",
		"?fieldSelector=metadata.namespace%3Db", "?fieldSelector=metadata.name%3Dx,metadata.name%3Dy", "?watch=false", "?watch=0", "?includeObject=Object",
	} {
		f := form{name: "list", method: "GET", path: a.all + q, needs: a.need("list", ""), shows: xy}
		if strings.Contains(q, "metadata.name%3Dx,") {
			f.needs, f.shows = a.need("list", "x"), nil // one name after the other is asked for, and none has both
		}
		a.add(f)
	}
	selected := "?fieldSelector=metadata.name%3D" + a.x
	for _, accept := range []string{inJSON, asTable} {
		a.add(form{name: "list one", method: "GET", path: a.all + selected, accept: accept, needs: a.need("list", a.x), shows: x})
		a.add(form{name: "list one", method: "GET", path: a.all + selected + "&limit=1&resourceVersion=0", accept: accept, needs: a.need("list", a.x), shows: x})
	}
	if a.r.Namespaced {
		wide := collection(a.r, "")
		a.add(form{name: "list everywhere", method: "GET", path: wide, needs: a.need("list", ""), shows: everywhere})
		a.add(form{name: "list one everywhere", method: "GET", path: wide + selected, needs: a.need("list", a.x), shows: []string{"a/" + a.x, "b/" + a.x}})
		a.add(form{name: "list elsewhere", method: "GET", path: collection(a.r, "b"), needs: a.need("list", ""), shows: []string{"b/" + a.x}})
	}
}

func (a *asker) watches() {
	x, xy := []string{a.home + a.x}, []string{a.home + a.x, a.home + named(a.r, "y")}
	selected := "fieldSelector=metadata.name%3D" + a.x
	for _, accept := range []string{inJSON, asTable, asPartial, inProtobuf + ";stream=watch"} {
		a.add(form{name: "watch", method: "GET", path: a.all + "?watch=1", accept: accept, needs: a.need("watch", ""), shows: xy, stream: true})
	}
	for _, q := range []string{"?watch", "?watch=true&resourceVersion=0", "?watch=x&resourceVersion=1", "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"} {
		a.add(form{name: "watch", method: "GET", path: a.all + q, needs: a.need("watch", ""), shows: xy, stream: true})
	}
	a.add(form{name: "watch one", method: "GET", path: a.all + "?watch=1&" + selected, needs: a.need("watch", a.x), shows: x, stream: true})
	a.add(form{name: "watch one by its path", method: "GET", path: a.all + "/" + a.x + "?watch=1",
		needs: []need{{"get", a.r.Plural, a.x}, {"watch", a.r.Plural, a.x}}, shows: x, stream: true})
	old := strings.Replace(a.all, "/"+a.r.Version+"/", "/"+a.r.Version+"/watch/", 1)
	a.add(form{name: "old watch", method: "GET", path: old, needs: a.need("watch", ""), shows: xy, stream: true})
	a.add(form{name: "old watch, selected", method: "GET", path: old + "?" + selected, needs: a.need("watch", ""), shows: x, stream: true})
	a.add(form{name: "old watch of one", method: "GET", path: old + "/" + a.x, needs: a.need("watch", a.x), shows: x, stream: true})
	a.add(form{name: "old watch of another", method: "GET", path: old + "/" + a.x + "?fieldSelector=metadata.name%3Dy", needs: a.need("watch", a.x), stream: true})
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		a.add(form{name: "old watch, written", method: method, path: old + "/" + a.x, needs: a.need("watch", a.x), as: inJSON, body: text(sample(a.r, "a", "x", ""))})
	}
	a.add(form{name: "old proxy", method: "GET", path: strings.Replace(old, "/watch/", "/proxy/", 1) + "/" + a.x, needs: a.need("proxy", a.x)})
}

func (a *asker) creates() {
	fresh := sample(a.r, "a", "new", "")
	make := []string{"create " + a.home + a.fresh}
	must := slices.Contains(a.r.Verbs, "create")
	a.add(form{name: "create", method: "POST", path: a.all, as: inJSON, body: text(fresh), needs: a.need("create", ""), does: make, must: must})
	a.add(form{name: "create", method: "POST", path: a.all, as: inYAML, body: text(fresh), needs: a.need("create", ""), does: make, must: must})
	if a.r.HasGoType() {
		a.add(form{name: "create", method: "POST", path: a.all, as: inProtobuf, body: text(a.packed(fresh)), needs: a.need("create", ""), does: make, must: must})
	}
	a.add(form{name: "create, tried", method: "POST", path: a.all + "?dryRun=All", as: inJSON, body: text(fresh), needs: a.need("create", "")})
	a.add(form{name: "create what is there", method: "POST", path: a.all, as: inJSON, body: text(sample(a.r, "a", "x", "")), needs: a.need("create", "")})
	generated := strings.Replace(fresh, `"name":"`+a.fresh+`"`, `"generateName":"g-"`, 1)
	a.add(form{name: "create a name", method: "POST", path: a.all, as: inJSON, body: text(generated), needs: a.need("create", ""), does: []string{"create " + a.home}})
	a.add(form{name: "create elsewhere", method: "POST", path: a.all, as: inJSON, needs: a.need("create", ""),
		body: text(strings.Replace(fresh, `"metadata":{`, `"metadata":{"namespace":"b",`, 1)), does: make}) // those of no namespace do not care
	a.add(form{name: "create at a name", method: "POST", path: a.all + "/" + a.fresh, as: inJSON, body: text(fresh), needs: a.need("create", a.fresh)})
}

// packed returns an object in Protobuf.
func (a *asker) packed(body string) string {
	obj := a.r.New()
	if _, err := (jsoncodec.Codec{}).Decode([]byte(body), obj, codecs.Strict); err != nil {
		a.c.t.Fatalf("%s: %v", a.r.GroupResource(), err)
	}
	data, err := (protobuf.Codec{}).Encode(nil, obj)
	if err != nil {
		a.c.t.Fatal(err)
	}
	return string(data)
}

// relabelled returns the object that is there, with a label more.
func (a *asker) relabelled() string {
	var obj map[string]any
	if err := json.Unmarshal(a.c.must("GET", a.all+"/"+a.x, ""), &obj); err != nil {
		a.c.t.Fatal(err)
	}
	obj["metadata"].(map[string]any)["labels"] = map[string]string{"more": "1"}
	data, err := json.Marshal(obj)
	if err != nil {
		a.c.t.Fatal(err)
	}
	return string(data)
}

const more = `{"metadata":{"labels":{"more":"1"}}}`

// patches are patches of each sort that give an object a label.
func (a *asker) patches(name string) map[string]string {
	return map[string]string{
		mergePatch: more, strategic: more,
		jsonPatch:  `[{"op":"add","path":"/metadata/labels","value":{"more":"1"}}]`,
		applyPatch: `{"apiVersion":"` + a.r.GVK().GroupVersion().String() + `","kind":"` + a.r.Kind + `","metadata":{"name":"` + name + `","labels":{"more":"1"}}}`,
	}
}

func (a *asker) updates() {
	x := a.home + a.x
	made := []string{"create " + a.home + a.fresh}
	changed := []string{"update " + x}
	// Objects of the old form of events are none of the new one.
	must := a.r.Group != "events.k8s.io"
	shows := []string{x}
	a.add(form{name: "update", method: "PUT", path: a.all + "/" + a.x, as: inJSON, body: a.relabelled, needs: a.need("update", a.x), shows: shows, does: changed, must: must})
	a.add(form{name: "update", method: "PUT", path: a.all + "/" + a.x, as: inYAML, body: a.relabelled, needs: a.need("update", a.x), shows: shows, does: changed, must: must})
	if a.r.HasGoType() {
		a.add(form{name: "update", method: "PUT", path: a.all + "/" + a.x, as: inProtobuf, body: func() string { return a.packed(a.relabelled()) },
			needs: a.need("update", a.x), shows: shows, does: changed, must: must})
	}
	a.add(form{name: "update, tried", method: "PUT", path: a.all + "/" + a.x + "?dryRun=All", as: inJSON, body: a.relabelled, needs: a.need("update", a.x), shows: shows})
	a.add(form{name: "update all", method: "PUT", path: a.all, as: inJSON, body: a.relabelled, needs: a.need("update", "")})

	put := a.need("update", a.fresh)
	if a.r.Storage.CreateOnUpdate {
		put = append(put, need{"create", a.r.Plural, a.fresh})
	}
	fresh := sample(a.r, "a", "new", "")
	a.add(form{name: "update to create", method: "PUT", path: a.all + "/" + a.fresh, as: inJSON, body: text(fresh), needs: put, does: made, must: a.r.Storage.CreateOnUpdate})
	a.add(form{name: "update to create, tried", method: "PUT", path: a.all + "/" + a.fresh + "?dryRun=All", as: inJSON, body: text(fresh), needs: put})

	for as, body := range a.patches(a.x) {
		query := "?fieldManager=m"
		if as == applyPatch {
			query += "&force=true"
		}
		a.add(form{name: "patch", method: "PATCH", path: a.all + "/" + a.x + query, as: as, body: text(body), needs: a.need("patch", a.x), shows: shows,
			does: changed, must: must && (as != strategic || a.r.HasGoType())})
		a.add(form{name: "patch, tried", method: "PATCH", path: a.all + "/" + a.x + query + "&dryRun=All", as: as, body: text(body), needs: a.need("patch", a.x), shows: shows})
		if as != applyPatch {
			a.add(form{name: "patch nothing", method: "PATCH", path: a.all + "/" + a.fresh, as: as, body: text(body), needs: a.need("patch", a.fresh)})
		}
	}
	both := append(a.need("patch", a.fresh), need{"create", a.r.Plural, a.fresh})
	for _, q := range []string{"", "&force=true"} {
		a.add(form{name: "apply to create", method: "PATCH", path: a.all + "/" + a.fresh + "?fieldManager=m" + q, as: applyPatch, body: text(fresh), needs: both, does: made, must: true})
		a.add(form{name: "apply to create, tried", method: "PATCH", path: a.all + "/" + a.fresh + "?fieldManager=m&dryRun=All" + q, as: applyPatch, body: text(fresh), needs: both})
	}
	a.add(form{name: "apply nonsense to create", method: "PATCH", path: a.all + "/" + a.fresh + "?fieldManager=m", as: applyPatch, body: text("nonsense"), needs: both})
	a.add(form{name: "patch all", method: "PATCH", path: a.all, as: mergePatch, body: text(more), needs: a.need("patch", "")})
}

func (a *asker) deletes() {
	x, y := a.home+a.x, a.home+named(a.r, "y")
	gone := []string{"update " + x, "delete " + x}
	shows := []string{x}
	a.add(form{name: "delete", method: "DELETE", path: a.all + "/" + a.x, needs: a.need("delete", a.x), shows: shows, does: gone, must: true})
	for _, body := range []string{`{"propagationPolicy":"Foreground"}`, `{"propagationPolicy":"Orphan"}`, `{"gracePeriodSeconds":0}`} {
		a.add(form{name: "delete", method: "DELETE", path: a.all + "/" + a.x, as: inJSON, body: text(body), needs: a.need("delete", a.x), shows: shows, does: gone, must: true})
	}
	for _, body := range []string{`{"dryRun":["All"]}`, `{"preconditions":{"uid":"other"}}`, `{"preconditions":{"resourceVersion":"1"}}`} {
		a.add(form{name: "delete in vain", method: "DELETE", path: a.all + "/" + a.x, as: inJSON, body: text(body), needs: a.need("delete", a.x), shows: shows})
	}
	a.add(form{name: "delete, tried", method: "DELETE", path: a.all + "/" + a.x + "?dryRun=All", needs: a.need("delete", a.x), shows: shows})
	everything := []string{"update " + a.home, "delete " + a.home}
	has := slices.Contains(a.r.Verbs, "deletecollection")
	a.add(form{name: "delete all", method: "DELETE", path: a.all, needs: a.need("deletecollection", ""), shows: []string{x, y}, does: everything, must: has})
	a.add(form{name: "delete all, tried", method: "DELETE", path: a.all + "?dryRun=All", needs: a.need("deletecollection", ""), shows: []string{x, y}})
	a.add(form{name: "delete one of all", method: "DELETE", path: a.all + "?fieldSelector=metadata.name%3D" + a.x, needs: a.need("deletecollection", ""), shows: shows, does: gone, must: has})
	if a.r.Namespaced {
		a.add(form{name: "delete everywhere", method: "DELETE", path: collection(a.r, ""), needs: a.need("deletecollection", "")})
	}
}

// part are the forms of a subresource.
func (a *asker) part(s *kinds.Subresource) {
	path, what, x := a.all+"/"+a.x+"/"+s.Name, a.r.Plural+"/"+s.Name, a.home+a.x
	needs := func(verb string) []need {
		if s.Name == "approval" && (verb == "update" || verb == "patch") {
			return []need{{verb, what, a.x}, {"approve", "signers", "x.example/y"}}
		}
		return []need{{verb, what, a.x}}
	}
	f := form{name: s.Name, path: path, shows: []string{x}}
	change := f
	change.does = []string{"update " + x}
	with := func(f form, method, verb, as, body string) form {
		f.method, f.needs, f.as, f.body = method, needs(verb), as, text(body)
		return f
	}
	if s.Update == nil && s.Scale == nil {
		a.action(s, f)
		return
	}
	a.add(with(f, "GET", "get", "", ""))
	watched := with(f, "GET", "get", "", "")
	watched.path += "?watch=1"
	a.add(watched)
	replaced := with(change, "PUT", "update", inJSON, "")
	replaced.body = a.relabelled
	if s.Scale != nil {
		replaced.body = text(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"` + a.x + `","namespace":"a"},"spec":{"replicas":7}}`)
	}
	a.add(replaced)
	tried := replaced
	tried.path, tried.does = path+"?dryRun=All", nil
	a.add(tried)
	missing := replaced
	missing.path, missing.needs, missing.does, missing.shows = a.all+"/"+a.fresh+"/"+s.Name, []need{{"update", what, a.fresh}}, nil, nil
	missing.body = text(sample(a.r, "a", "new", ""))
	if s.Name == "status" && a.r.Storage.CreateOnUpdate && a.r.Plural == "services" {
		missing.further = []need{{"create", what, a.fresh}} // a stock server creates here, too
		missing.does = []string{"create " + a.home + a.fresh}
	}
	a.add(missing)
	for as, body := range a.patches(a.x) {
		p := with(change, "PATCH", "patch", as, body)
		if s.Scale != nil {
			p.body = text(map[string]string{
				mergePatch: `{"spec":{"replicas":7}}`, strategic: `{"spec":{"replicas":7}}`, jsonPatch: `[{"op":"replace","path":"/spec/replicas","value":7}]`,
				applyPatch: `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"` + a.x + `"},"spec":{"replicas":7}}`,
			}[as])
			p.must = as != strategic || a.r.HasGoType()
		}
		p.path += "?fieldManager=m"
		if as == applyPatch {
			p.path += "&force=true"
		}
		a.add(p)
		p.path, p.does, p.must = p.path+"&dryRun=All", nil, false
		a.add(p)
	}
	a.add(with(f, "POST", "create", inJSON, sample(a.r, "a", "x", "")))
	a.add(with(f, "DELETE", "delete", "", ""))
}

// action are the forms of a subresource that is none of the object.
func (a *asker) action(s *kinds.Subresource, f form) {
	what, x := a.r.Plural+"/"+s.Name, a.home+a.x
	f.shows = nil
	for method, verb := range map[string]string{"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "OPTIONS": "", "PURGE": ""} {
		g := f
		g.method, g.needs = method, []need{{verb, what, a.x}}
		if method == "POST" {
			g.as = inJSON
			switch s.Name {
			case "binding":
				g.body, g.does, g.must = text(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"`+a.x+`"},"target":{"name":"n"}}`), []string{"update " + x}, true
				other := g
				other.body, other.does, other.must = text(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"y"},"target":{"name":"n"}}`), nil, false
				a.add(other)
			case "eviction":
				g.body, g.does, g.must = text(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"`+a.x+`"}}`), []string{"update " + x, "delete " + x}, true
				tried := g
				tried.path, tried.does, tried.must = g.path+"?dryRun=All", nil, false
				a.add(tried)
				other := tried
				other.path, other.body = g.path, text(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"y"}}`)
				a.add(other)
			case "token":
				g.body = text(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"boundObjectRef":{"kind":"Secret","apiVersion":"v1","name":"x"}}}`)
			}
		}
		a.add(g)
		if s.Name == "proxy" {
			g.path += "/some/path?watch=1"
			a.add(g)
		}
		if method == "GET" {
			g.path = f.path + "?watch=1"
			a.add(g)
		}
	}
}

// strange are methods that no verb stands for.
func (a *asker) strange() {
	for _, method := range []string{"OPTIONS", "TRACE", "PURGE", "get", "Post"} {
		a.add(form{name: "strange", method: method, path: a.all, as: inJSON, body: text(sample(a.r, "a", "new", "")), needs: a.need("", "")})
		a.add(form{name: "strange", method: method, path: a.all + "/" + a.x, as: inJSON, body: text(sample(a.r, "a", "x", "")), needs: a.need("", a.x)})
	}
	if a.r.Plural == "pods" {
		a.add(form{name: "bindings", method: "POST", path: strings.TrimSuffix(a.all, "pods") + "bindings", as: inJSON, needs: []need{{"create", "bindings", ""}},
			body: text(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"` + a.x + `"},"target":{"name":"n"}}`), does: []string{"update " + a.home + a.x}, must: true})
	}
}
