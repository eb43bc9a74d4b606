package apiextensions

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/kinds"
)

// SchemasAside has writes of the status leave the schemas alone, which are nearly all of a definition.
var SchemasAside = &kinds.Aside{Cut: func(stored []byte) []byte { return CutSchemas(stored, nil) }, Join: joinSchemas, Fill: fillSchemas}

// CutSchemas is the text of a stored definition with an empty object for the schema of each version. It
// shows what it leaves out, unless each is nil.
func CutSchemas(text []byte, each func(version, schema []byte)) []byte {
	small, last := make([]byte, 0, 4096), 0
	EachVersion(text, func(version []byte, at int) {
		if from, to := Member(version, "schema"); from >= 0 {
			if each != nil {
				each(version, version[from:to])
			}
			small = append(append(small, text[last:at+from]...), "{}"...)
			last = at + to
		}
	})
	return append(small, text[last:]...)
}

// joinSchemas puts the schemas of a stored definition where CutSchemas had left them out of it.
func joinSchemas(cut, stored []byte) ([]byte, bool) {
	type version struct{ name, schema []byte }
	var all []version
	size := len(cut)
	EachVersion(stored, func(text []byte, _ int) {
		v := version{name: scan.Lookup(text, "name")}
		if from, to := Member(text, "schema"); from >= 0 {
			v.schema = text[from:to]
			size += len(v.schema) - len("{}")
		}
		all = append(all, v)
	})
	out, last, n := make([]byte, 0, size), 0, 0
	EachVersion(cut, func(text []byte, at int) {
		from, to := Member(text, "schema")
		if n < 0 || n == len(all) || string(scan.Lookup(text, "name")) != string(all[n].name) || (from >= 0) != (all[n].schema != nil) {
			n = -1
			return
		}
		if from >= 0 {
			out = append(append(out, cut[last:at+from]...), all[n].schema...)
			last = at + to
		}
		n++
	})
	out = append(out, cut[last:]...)
	return out, n == len(all) && len(out) == size
}

// fillSchemas gives definitions that were made without the schemas of whole.
func fillSchemas(whole kinds.Object, into ...kinds.Object) {
	versions := whole.(*apiextensionsv1.CustomResourceDefinition).Spec.Versions
	for _, obj := range into {
		d := obj.(*apiextensionsv1.CustomResourceDefinition)
		for i := range d.Spec.Versions {
			if i < len(versions) && versions[i].Name == d.Spec.Versions[i].Name {
				d.Spec.Versions[i].Schema = versions[i].Schema.DeepCopy()
			}
		}
	}
}

// EachVersion calls fn with the text of each version of a stored definition, and where in the whole text
// it begins.
func EachVersion(text []byte, fn func(version []byte, at int)) {
	from, to := Member(text, "spec", "versions")
	if from < 0 {
		return
	}
	scan.Loose.Elements(text[:to], from, func(at int) (int, bool) {
		end := scan.Skip(text, at)
		if end >= 0 {
			fn(text[at:end], at)
		}
		return end, true
	})
}

// Member is where the value at a path of member names stands in a text; from is -1 if it is
// not there.
func Member(text []byte, path ...string) (from, to int) {
	from, to = scan.Space(text, 0), len(text)
	for _, want := range path {
		at, end := -1, -1
		scan.Loose.Members(text, from, func(name scan.Name, value int) (int, bool) {
			after := scan.Skip(text, value)
			if string(name.In(text)) != want {
				return after, true
			}
			at, end = value, after
			return after, false
		})
		if from, to = at, end; at < 0 || end < 0 {
			return -1, -1
		}
	}
	return from, to
}
