package apiextensions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/rowlock/rowlock/server/kinds/apiextensions"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
)

const definition = `{"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
"names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`

// read makes a definition that differs from a valid one by a merge patch in YAML.
func read(t testing.TB, changes ...string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var tree map[string]any
	if err := json.Unmarshal([]byte(definition), &tree); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		var change map[string]any
		if err := yaml.Unmarshal([]byte(c), &change); err != nil {
			t.Fatalf("%s: %v", c, err)
		}
		merge(tree, change)
	}
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(data, d); err != nil {
		t.Fatal(err)
	}
	apiextensions.CustomResourceDefinition(release.Default).Default(d)
	return d
}

func merge(into, change map[string]any) {
	for k, v := range change {
		old, isMap := into[k].(map[string]any)
		below, both := v.(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case isMap && both:
			merge(old, below)
		default:
			into[k] = v
		}
	}
}

// withSpec returns a change that gives the only version a schema of spec.
func withSpec(spec string) string {
	return "spec: {versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: " + spec + "}}}}]}"
}

func words(errs field.ErrorList) string {
	var all []string
	for _, err := range errs {
		all = append(all, status.Text(release.Default, err))
	}
	return strings.ReplaceAll(strings.Join(all, "; "), "spec.validation.openAPIV3Schema.properties[spec]", "SPEC")
}

func create(d *apiextensionsv1.CustomResourceDefinition) string {
	s := apiextensions.CustomResourceDefinition(release.Default)
	s.PrepareForCreate(context.Background(), d)
	return words(s.Validate(context.Background(), d))
}

func TestValidateSpec(t *testing.T) {
	const label = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
	for _, c := range []struct{ change, want string }{
		{"{}", ""},
		{"metadata: {name: gadgets.example.com}", `metadata.name: Invalid value: "gadgets.example.com": must be spec.names.plural+"."+spec.group`},
		{"metadata: {name: widgets.abcde, generateName: widgets.}", "metadata.generateName: Invalid value: \"widgets.\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'); " + `metadata.generateName: Invalid value: "widgets.": must be spec.names.plural+"."+spec.group; metadata.name: Invalid value: "widgets.abcde": must be spec.names.plural+"."+spec.group`},
		{"{metadata: {name: widgets.example}, spec: {group: example}}", `spec.group: Invalid value: "example": should be a domain with at least one dot`},
		{"spec: {scope: World}", `spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced"`},
		{"spec: {names: {kind: null}}", "spec.names.singular: Required value; spec.names.kind: Required value; spec.names.listKind: Required value"},
		{"spec: {names: {listKind: Widget}}", `spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same`},
		{"spec: {names: {shortNames: [ok, W], categories: [A]}}", `spec.names.shortNames[1]: Invalid value: "W": ` + label + `; spec.names.categories[0]: Invalid value: "A": ` + label},
		{"spec: {names: {kind: 2Widget, singular: widget}}", `spec.names.kind: Invalid value: "2Widget": may have mixed case, but should otherwise match: ` + label + `; spec.names.listKind: Invalid value: "2WidgetList": may have mixed case, but should otherwise match: ` + label},
		{"spec: {versions: [{name: v1, served: true, storage: true}]}", "spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"},
		{"spec: {preserveUnknownFields: true}", "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"},
		{"{metadata: {name: widgets.a.k8s.io}, spec: {group: a.k8s.io}}", `metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111`},
		{"{metadata: {name: widgets.a.k8s.io, annotations: {api-approved.kubernetes.io: maybe}}, spec: {group: a.k8s.io}}", `metadata.annotations[api-approved.kubernetes.io]: Invalid value: "maybe": protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111`},
		{`{metadata: {name: widgets.a.k8s.io, annotations: {api-approved.kubernetes.io: "unapproved, for now"}}, spec: {group: a.k8s.io}}`, ""},
		{"spec: {versions: [{name: v1, served: true, storage: true, deprecationWarning: old, schema: {openAPIV3Schema: {type: object}}}]}", `spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions`},
		{`spec: {versions: [{name: v1, served: true, storage: true, deprecated: true, deprecationWarning: "a\tb", schema: {openAPIV3Schema: {type: object}}}]}`, `spec.versions[0].deprecationWarning: Invalid value: "a\tb": must only contain printable UTF-8 characters; non-printable character found at index 1`},
	} {
		if got := create(read(t, c.change)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.change, got, c.want)
		}
	}
}

// TestErrorsAreBounded: a definition with many faulty names has about as many errors as an answer contains.
func TestErrorsAreBounded(t *testing.T) {
	d, s := read(t), apiextensions.CustomResourceDefinition(release.Default)
	d.Spec.Names.ShortNames, d.Spec.Names.Categories = make([]string, 5*rules.MaxErrors), make([]string, 5*rules.MaxErrors)
	s.PrepareForCreate(t.Context(), d)
	if n := len(s.Validate(t.Context(), d)); n < rules.MaxErrors || n > rules.MaxErrors+10 {
		t.Errorf("%d errors", n)
	}
}

func TestValidateConversion(t *testing.T) {
	hook := func(client, reviews string) string {
		return "spec: {conversion: {strategy: Webhook, webhook: {clientConfig: " + client + ", conversionReviewVersions: " + reviews + "}}}"
	}
	for _, c := range []struct{ change, want string }{
		{"spec: {conversion: {strategy: Magic}}", `spec.conversion.strategy: Unsupported value: "Magic": supported values: "None", "Webhook"`},
		{"spec: {conversion: {strategy: Webhook}}", "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook; spec.conversion.conversionReviewVersions: Required value"},
		{"spec: {conversion: {strategy: None, webhook: {clientConfig: {url: 'https://a/b'}, conversionReviewVersions: [v1]}}}", "spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook; spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook"},
		{hook("{url: 'https://a/b'}", "[v1]"), ""},
		{hook("{}", "[v1]"), "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required"},
		{hook("{url: 'http://u@a/b?c=d#e'}", "[v1]"), `spec.conversion.webhookClientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]; spec.conversion.webhookClientConfig.url: Invalid value: "u": user information is not permitted in the URL; spec.conversion.webhookClientConfig.url: Invalid value: "e": fragments are not permitted in the URL; spec.conversion.webhookClientConfig.url: Invalid value: "c=d": query parameters are not permitted in the URL`},
		{hook("{service: {name: a, namespace: b, path: 'c//d', port: 70000}}", "[v1]"), `spec.conversion.webhookClientConfig.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive; spec.conversion.webhookClientConfig.service.path: Invalid value: "c//d": must start with a '/'; spec.conversion.webhookClientConfig.service.path: Invalid value: "c//d": segment[0] may not be empty; spec.conversion.webhookClientConfig.service.path: Invalid value: "c//d": segment[1] may not be empty`},
		{hook("{service: {name: a, namespace: ''}}", "[v1]"), "spec.conversion.webhookClientConfig.service.name: Required value: service name is required"},
		{hook("{url: 'https://a/b', caBundle: bm9uZQ==}", "[v1]"), ""},
		{hook("{url: 'https://a/b'}", "[v7, v7, V]"), `spec.conversion.conversionReviewVersions[1]: Invalid value: "v7": duplicate version; spec.conversion.conversionReviewVersions[2]: Invalid value: "V": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?'); spec.conversion.conversionReviewVersions: Invalid value: []string{"v7", "v7", "V"}: must include at least one of v1, v1beta1`},
	} {
		if got := create(read(t, c.change)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.change, got, c.want)
		}
	}
}

func TestValidateFields(t *testing.T) {
	version := func(more string) string {
		return "spec: {versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {metadata: {type: object, properties: {name: {type: string}}}, spec: {type: object, properties: {a: {type: string}, l: {type: array, items: {type: string}}}}}}}, " + more + "}]}"
	}
	for _, c := range []struct{ change, want string }{
		{version("additionalPrinterColumns: [{name: A, type: date, format: date-time, jsonPath: .spec.a}]"), ""},
		{version("additionalPrinterColumns: [{name: '', type: text, format: odd, jsonPath: spec}]"), "spec.additionalPrinterColumns[0].name: Required value; " +
			`spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string; ` +
			`spec.additionalPrinterColumns[0].format: Invalid value: "odd": must be one of byte,date,date-time,double,float,int32,int64,password; ` +
			`spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": must be a simple json path starting with .`},
		{version("subresources: {scale: {specReplicasPath: .status.a, statusReplicasPath: '', labelSelectorPath: .metadata.x}}"), `spec.subresources.scale.specReplicasPath: Invalid value: ".status.a": should be a json path under .spec; ` +
			"spec.subresources.scale.statusReplicasPath: Required value; " +
			`spec.subresources.scale.labelSelectorPath: Invalid value: ".metadata.x": should be a json path under either .spec or .status`},
		{version("selectableFields: [{jsonPath: .spec.a}]"), ""},
		{version("selectableFields: [{jsonPath: .spec.a}, {jsonPath: .spec.a}, {jsonPath: .spec.l}, {jsonPath: .spec.b}, {jsonPath: .metadata.name}, {jsonPath: ''}]"), `spec.selectableFields[1].jsonPath: Duplicate value: ".spec.a"; ` +
			`spec.selectableFields[2].jsonPath: Invalid value: ".spec.l": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.; ` +
			`spec.selectableFields[3].jsonPath: Invalid value: ".spec.b": is an invalid path: does not refer to a valid field; ` +
			`spec.selectableFields[4].jsonPath: Invalid value: ".metadata.name": must not point to fields in metadata; ` +
			"spec.selectableFields[5].jsonPath: Required value"},
		{version("subresources: {status: {}}"), ""},
		{"spec: {versions: [{name: v1, served: true, storage: true, selectableFields: [{jsonPath: .spec.a.b}], schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, additionalProperties: true}}}}}]}",
			`spec.selectableFields[0].jsonPath: Invalid value: ".spec.a.b": is an invalid path: does not refer to a valid field`},
		{"spec: {versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, nullable: true}}}]}",
			"spec.validation.openAPIV3Schema.nullable: Forbidden: nullable cannot be true at the root"},
	} {
		got := create(read(t, c.change))
		if i := strings.Index(got, "spec.validation.openAPIV3Schema: Invalid value: apiextensions.JSONSchemaProps{"); i >= 0 { // it prints pointers
			got = got[:i] + got[strings.LastIndex(got, "; ")+2:]
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.change, got, c.want)
		}
	}
}

func TestValidateSchema(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"{type: object}", ""},
		{"{}", "SPEC.type: Required value: must not be empty for specified object fields"},
		{"{type: thing}", `SPEC.type: Unsupported value: "thing": supported values: "array", "boolean", "integer", "number", "object", "string"`},
		{"{type: array}", "SPEC.items: Required value: must be specified"},
		{"{type: array, uniqueItems: true, items: {type: string}}", "SPEC.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"},
		{"{type: object, properties: {a: {type: string}}, additionalProperties: {type: string}}", "SPEC.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"},
		{"{type: object, x-kubernetes-preserve-unknown-fields: false}", "SPEC.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"},
		{"{type: object, $ref: a, id: b}", "SPEC.id: Forbidden: id is not supported; SPEC.$ref: Forbidden: $ref is not supported"},
		{"{type: string, default: 1}", `SPEC.default: Invalid value: "integer":  in body must be of type string: "integer"`},
		{"{type: object, default: {a: 1}}", `SPEC.default: Invalid value: map[string]interface {}{"a":1}: must not have unknown fields`},
		{"{type: object, x-kubernetes-map-type: odd}", `SPEC.x-kubernetes-map-type: Unsupported value: "odd": supported values: "atomic", "granular"`},
		{"{type: string, x-kubernetes-map-type: atomic}", `SPEC.type: Invalid value: "string": must be object if x-kubernetes-map-type is specified`},
		{"{type: array, x-kubernetes-list-type: set, items: {type: object}}", "SPEC.items.x-kubernetes-map-type: Invalid value: \"null\": must be atomic as item of a list with x-kubernetes-list-type=set"},
		{"{type: array, x-kubernetes-list-type: set, items: {type: string, nullable: true}}", "SPEC.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"},
		{"{type: array, x-kubernetes-list-map-keys: [k], items: {type: object}}", "SPEC.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty"},
		{"{type: array, x-kubernetes-list-type: map, items: {type: object}}", "SPEC.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"},
		{"{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, k, o, p], items: {type: object, required: [o], properties: {k: {type: string, nullable: true}, o: {type: object}}}}",
			`SPEC.x-kubernetes-list-map-keys: Invalid value: []string{"k", "k", "o", "p"}: must not contain duplicate entries; ` +
				`SPEC.items.properties[o].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map; ` +
				`SPEC.x-kubernetes-list-map-keys: Invalid value: []string{"k", "k", "o", "p"}: entries must all be names of item properties; ` +
				"SPEC.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property; " +
				"SPEC.items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable; " +
				"SPEC.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property; " +
				"SPEC.items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable"},
	} {
		if got := create(read(t, withSpec(c.spec))); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.spec, got, c.want)
		}
	}
}

// TestHugeRules: rules whose compilation would take hours are refused.
func TestHugeRules(t *testing.T) {
	const schema = "{type: object, x-kubernetes-validations: ["
	huge := "optional.of(1)" + strings.Repeat(".optMap(x, x)", 60)
	for rule, want := range map[string]string{
		"{rule: '" + huge + ".hasValue()'}":                                      "compilation failed: the expression is too large",
		"{rule: '[1]" + strings.Repeat(".map(x, {x: x})", 60) + ".size() == 1'}": "compilation failed: the types of the expression are too large",
		"{rule: 'true', messageExpression: 'string(" + huge + ".value())'}":      "messageExpression compilation failed: the expression is too large",
		"{rule: '" + strings.Repeat("self.nope && ", 1000) + "true'}":            "bytes more)",
	} {
		got := create(read(t, withSpec(schema+rule+"]}")))
		if strings.Count(got, "Invalid value") != 1 || !strings.Contains(got, want) {
			t.Errorf("%.60s: %.300s ... %d bytes", rule, got, len(got))
		}
	}
}

func TestValidateRules(t *testing.T) {
	const rule = "SPEC.x-kubernetes-validations[0]"
	value := func(rule, expression string) string {
		return `apiextensions.ValidationRule{Rule:"` + rule + `", Message:"", MessageExpression:"` + expression + `", Reason:(*apiextensions.FieldValueErrorReason)(nil), FieldPath:"", OptionalOldSelf:(*bool)(nil)}`
	}
	const schema = "{type: object, properties: {size: {type: integer}, list: {type: array, items: {type: string}}}, x-kubernetes-validations: ["
	for _, c := range []struct{ rule, want string }{
		{"{rule: 'self.size > 1'}", ""},
		{"{rule: ' '}", rule + ".rule: Required value: rule is not specified"},
		{"{rule: self.size}", rule + ".rule: Invalid value: " + value("self.size", "") + ": cel expression must evaluate to a bool"},
		{"{rule: 'true', messageExpression: '1'}", rule + ".messageExpression: Invalid value: " + value("true", "1") + ": messageExpression must evaluate to a string"},
		{"{rule: 'true', message: ' '}", rule + `.message: Invalid value: " ": message must be non-empty if specified`},
		{`{rule: "true", message: "a\nb"}`, rule + `.message: Invalid value: "a\nb": message must not contain line breaks`},
		{`{rule: "true\n|| false"}`, rule + ".message: Required value: message must be specified if rule contains line breaks"},
		{"{rule: 'true', messageExpression: ' '}", rule + ".messageExpression: Required value: messageExpression must be non-empty if specified"},
		{"{rule: 'true', reason: Odd}", rule + `.reason: Unsupported value: "Odd": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"`},
		{"{rule: 'true', fieldPath: .size}", ""},
		{"{rule: 'true', fieldPath: .no}", rule + `.fieldPath: Invalid value: ".no": fieldPath must be a valid path`},
		{"{rule: 'true', optionalOldSelf: true}", rule + ".optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"},
		{"{rule: 'self.list.all(a, self.list.all(b, a != b))'}", rule + ".rule: Forbidden: " + tooCostly("estimated rule cost", "more than 100x") + "; " +
			rule + ".rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema; " +
			"spec.validation.openAPIV3Schema: Forbidden: " + tooCostly("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema", "more than 100x")},
	} {
		if got := create(read(t, withSpec(schema+c.rule+"]}"))); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.rule, got, c.want)
		}
	}
}

func tooCostly(what, factor string) string {
	return what + " exceeds budget by factor of " + factor + " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
}

func TestOldValuesNeedCounterparts(t *testing.T) {
	list := func(kind string) string {
		return "{type: object, properties: {l: {type: array, maxItems: 5, " + kind + "items: {type: object, required: [k], properties: {k: {type: string, maxLength: 5}}, x-kubernetes-validations: [{rule: 'self == oldSelf'}]}}}}"
	}
	if got := create(read(t, withSpec(list("x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], ")))); got != "" {
		t.Errorf("of a map: %s", got)
	}
	const want = `SPEC.properties[l].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within SPEC.properties[l]`
	if got := create(read(t, withSpec(list("")))); got != want {
		t.Errorf("of an atomic list:\n got %s\nwant %s", got, want)
	}
}

func TestValidateUpdate(t *testing.T) {
	established := "status: {storedVersions: [v1], conditions: [{type: Established, status: 'True'}]}"
	const bundle = "spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {url: 'https://a/b', caBundle: bm9uZQ==}, conversionReviewVersions: [v1]}}}"
	costly := withSpec("{type: object, properties: {list: {type: array, items: {type: string}}}, x-kubernetes-validations: [{rule: 'self.list.all(a, a.size() > 1)'}, {rule: 'self.list.all(a, a.size() > 1)'}]}")
	set := withSpec("{type: array, x-kubernetes-list-type: set, items: {type: object}}")
	for name, c := range map[string]struct {
		old, change []string
		want        string
	}{
		"nothing":          {[]string{established}, nil, ""},
		"scope":            {[]string{established}, []string{"spec: {scope: Cluster}"}, `spec.scope: Invalid value: "Cluster": field is immutable`},
		"kind":             {[]string{established}, []string{"spec: {names: {kind: Gadget}}"}, `spec.names.kind: Invalid value: "Gadget": field is immutable`},
		"kind too early":   {nil, []string{"spec: {names: {kind: Gadget}}"}, ""},
		"plural":           {nil, []string{"spec: {names: {plural: gadgets}}"}, `spec.names.plural: Invalid value: "gadgets": field is immutable`},
		"a version gone":   {[]string{established}, []string{"spec: {versions: [{name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}"}, `status.storedVersions[0]: Invalid value: "v1": must appear in spec.versions`},
		"bad bundle":       {[]string{established}, []string{bundle}, "spec.conversion.webhookClientConfig.caBundle: Invalid value: []byte{0x6e, 0x6f, 0x6e, 0x65}: unable to load root certificates: unable to parse bytes as PEM block"},
		"bad bundle again": {[]string{established, bundle}, nil, ""},
		"too early":        {nil, []string{bundle}, ""},
		"a set again":      {[]string{set}, []string{"spec: {names: {singular: one}}"}, ""},
		"a new set":        {nil, []string{set}, `SPEC.items.x-kubernetes-map-type: Invalid value: "null": must be atomic as item of a list with x-kubernetes-list-type=set`},
		"costs again":      {[]string{costly}, []string{"spec: {names: {singular: one}}"}, ""},
		"unapproved again": {[]string{"{metadata: {name: widgets.a.k8s.io}, spec: {group: a.k8s.io}}"}, []string{"spec: {names: {singular: one}}"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			old, d := read(t, c.old...), read(t, append(c.old, c.change...)...)
			s := apiextensions.CustomResourceDefinition(release.Default)
			s.PrepareForUpdate(t.Context(), d, old)
			if got := words(s.ValidateUpdate(t.Context(), d, old)); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestManySelectableFields: a definition that has more fields to select by than are allowed may keep them since release
// 1.33, and not get others.
func TestManySelectableFields(t *testing.T) {
	fields := func(n int) string {
		var properties, paths []string
		for i := range n {
			properties = append(properties, fmt.Sprintf("f%d: {type: string}", i))
			paths = append(paths, fmt.Sprintf("{jsonPath: .f%d}", i))
		}
		return fmt.Sprintf("spec: {versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {%s}}}, selectableFields: [%s]}]}",
			strings.Join(properties, ", "), strings.Join(paths, ", "))
	}
	const many = "spec.selectableFields: Too many: 9: must have at most 8 items"
	for _, c := range []struct {
		of   release.Version
		was  int
		want string
	}{{release.V132, 9, many}, {release.V134, 9, ""}, {release.V136, 9, ""}, {release.V136, 8, many}, {release.V136, 10, many}} {
		old, d := read(t, fields(c.was)), read(t, fields(9))
		if got := words(apiextensions.CustomResourceDefinition(c.of).ValidateUpdate(t.Context(), d, old)); got != c.want {
			t.Errorf("%s, %d before: got %s, want %s", c.of, c.was, got, c.want)
		}
	}
}

func TestDefinitionsAreNormalized(t *testing.T) {
	d := read(t, withSpec("{type: object, default: null, properties: {a: {type: number, default: 1.0}}}"), "spec: {conversion: {strategy: None, webhook: {}}}")
	spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	if spec.Default != nil || d.Spec.Conversion.Webhook != nil {
		t.Errorf("kept: default %s, webhook %v", spec.Default, d.Spec.Conversion.Webhook)
	}
	if got := string(spec.Properties["a"].Default.Raw); got != "1" {
		t.Errorf("default %s", got)
	}
}

func TestManyRulesEndWithTheRequest(t *testing.T) {
	d := read(t, withSpec("{type: object, x-kubernetes-validations: [{rule: 'true'}]}"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	apiextensions.CustomResourceDefinition(release.Default).PrepareForCreate(ctx, d)
	if got, want := words(apiextensions.CustomResourceDefinition(release.Default).Validate(ctx, d)), "SPEC.x-kubernetes-validations: Internal error: context canceled"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
