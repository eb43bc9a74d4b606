package server_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/servertest"
)

// documentsFile has the documents of stock servers of releases after 1.32 in lines, each after the last numbers of the
// releases that have it: "56 TEXT". With the variable ROWLOCK_RELEASE_DOCUMENTS the test writes it,
// from a folder RELEASE/{aggregated-apis.json,aggregated-api.json,openapi-v2.json} for each release.
const documentsFile = "../e2e/testdata/releases/documents.txt.gz"

const discovered = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// TestDocumentsOfReleases: discovery and OpenAPI of each release are those of a stock server, except for
// the differences in tolerated.
func TestDocumentsOfReleases(t *testing.T) {
	if dir := os.Getenv("ROWLOCK_RELEASE_DOCUMENTS"); dir != "" {
		writeDocuments(t, dir)
	}
	for _, v := range release.All()[1:] {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			s := servertest.Start(t, servertest.Complete(t, "--emulated-version="+v.String()), servertest.Idle)
			got := documentLines(t, s.Must("GET", "/api", "", "Accept", discovered), s.Must("GET", "/apis", "", "Accept", discovered), s.Must("GET", "/openapi/v2", ""))
			want := stockLines(t, v)
			if len(want) < 4000 {
				t.Fatalf("%d lines of a stock server", len(want))
			}
			have, wanted := linesSet(got), linesSet(want)
			missing := slices.DeleteFunc(slices.Clone(want), func(line string) bool { return have[line] || tolerated(v, line, true) })
			extra := slices.DeleteFunc(got, func(line string) bool { return wanted[line] || tolerated(v, line, false) })
			if len(missing)+len(extra) > 0 {
				t.Errorf("%d lines of a stock server are missing:\n%.4000s\n%d lines are not a stock server's:\n%.4000s", len(missing), strings.Join(missing, "\n"), len(extra), strings.Join(extra, "\n"))
			}
		})
	}
}

// later are fields and types of OpenAPI that a stock server shows in each release that it emulates: here they come with
// the release that brings them, and before are neither shown nor stored.
var later = map[string]release.Version{
	"apiextensions.v1.CustomResourceDefinitionCondition observedGeneration": release.V135,
	"apiextensions.v1.CustomResourceDefinitionStatus observedGeneration":    release.V135,
	"meta.v1.ListMeta shardInfo":                                            release.V136,
	"meta.v1.ShardInfo":                                                     release.V136,
	"core.v1.Container restartPolicyRules":                                  release.V134,
	"core.v1.ContainerExtendedResourceRequest":                              release.V134,
	"core.v1.ContainerRestartRule":                                          release.V134,
	"core.v1.ContainerRestartRuleOnExitCodes":                               release.V134,
	"core.v1.EnvVarSource fileKeyRef":                                       release.V134,
	"core.v1.EphemeralContainer restartPolicyRules":                         release.V134,
	"core.v1.FileKeySelector":                                               release.V134,
	"core.v1.ImageVolumeStatus":                                             release.V136,
	"core.v1.NodeAllocatableResourceClaimStatus":                            release.V136,
	"core.v1.NodeStatus declaredFeatures":                                   release.V135,
	"core.v1.PodCertificateProjection":                                      release.V134,
	"core.v1.PodCertificateProjection userAnnotations":                      release.V135,
	"core.v1.PodExtendedResourceClaimStatus":                                release.V134,
	"core.v1.PodSchedulingGroup":                                            release.V136,
	"core.v1.PodSpec hostnameOverride":                                      release.V134,
	"core.v1.PodSpec schedulingGroup":                                       release.V136,
	"core.v1.PodStatus allocatedResources":                                  release.V135,
	"core.v1.PodStatus extendedResourceClaimStatus":                         release.V134,
	"core.v1.PodStatus nodeAllocatableResourceClaimStatuses":                release.V136,
	"core.v1.PodStatus resources":                                           release.V135,
	"core.v1.ResourceHealth message":                                        release.V136,
	"core.v1.Toleration operator":                                           release.V135, // its values Gt and Lt
	"core.v1.VolumeMountStatus volumeStatus":                                release.V136,
	"core.v1.VolumeProjection podCertificate":                               release.V134,
	"core.v1.VolumeStatus":                                                  release.V136,
	"resource.v1.Device nodeAllocatableResourceMappings":                    release.V136,
	"resource.v1.DeviceAttribute bools":                                     release.V136,
	"resource.v1.DeviceAttribute ints":                                      release.V136,
	"resource.v1.DeviceAttribute strings":                                   release.V136,
	"resource.v1.DeviceAttribute versions":                                  release.V136,
	"resource.v1.DeviceTaint effect":                                        release.V135, // its value None
	"resource.v1.DeviceToleration effect":                                   release.V135,
	"resource.v1.NodeAllocatableResourceMapping":                            release.V136,
	"storage.v1.CSIDriverSpec preventPodSchedulingIfMissing":                release.V136,
	"storage.v1.CSIDriverSpec serviceAccountTokenInSecrets":                 release.V135,
}

// shards is the parameter of lists that came with release 1.36.
const shards = `{"in":"query","name":"shardSelector","type":"string","uniqueItems":true},`

// own matches lines that only this server has, and those of a stock server about versions that it does not serve.
var own = regexp.MustCompile(`history\.rowlock\.dev|dev\.rowlock\.history|meta\.v1\.(DeleteOptions|WatchEvent) x-kubernetes-group-version-kind `)

func tolerated(v release.Version, line string, stock bool) bool {
	if own.MatchString(line) {
		return true
	}
	words := strings.Fields(line)
	if words[0] != "type" {
		return false
	}
	parts := strings.Split(words[1], ".")
	typ := strings.Join(parts[max(0, len(parts)-3):], ".")
	_, valued := map[string]bool{"core.v1.Toleration": true, "resource.v1.DeviceTaint": true, "resource.v1.DeviceToleration": true}[typ]
	for _, name := range []string{typ, typ + " " + words[2]} {
		if since, ok := later[name]; ok && v < since && (stock || valued) {
			return true
		}
	}
	return false
}

func linesSet(lines []string) map[string]bool {
	set := make(map[string]bool, len(lines))
	for _, line := range lines {
		set[line] = true
	}
	return set
}

// stockLines returns the lines of a release.
func stockLines(t *testing.T, v release.Version) []string {
	t.Helper()
	file, err := os.Open(documentsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zr, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if releases, line, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); strings.Contains(releases, fmt.Sprint(v.Minor()%10)) {
			if v < release.V136 {
				line = strings.ReplaceAll(line, shards, "") // a stock server shows it in each release that it emulates
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func writeDocuments(t *testing.T, dir string) {
	t.Helper()
	releases := map[string]string{}
	for _, v := range release.All()[1:] {
		var docs [][]byte
		for _, name := range []string{"aggregated-api.json", "aggregated-apis.json", "openapi-v2.json"} {
			text, err := os.ReadFile(filepath.Join(dir, v.String(), name))
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, text)
		}
		for _, line := range documentLines(t, docs[0], docs[1], docs[2]) {
			releases[line] += fmt.Sprint(v.Minor() % 10)
		}
	}
	var out bytes.Buffer
	zw, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range slices.Sorted(maps.Keys(releases)) {
		if _, err := fmt.Fprintf(zw, "%s %s\n", releases[line], line); err != nil {
			t.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(documentsFile, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// documentLines are discovery and OpenAPI without descriptions, in lines: the order of groups, versions and
// resources with their places, and each resource, operation and property.
func documentLines(t *testing.T, api, apis, swagger []byte) []string {
	t.Helper()
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	before := "the first"
	for _, doc := range [][]byte{api, apis} {
		var list struct {
			Items []struct {
				Metadata struct{ Name string }
				Versions []struct {
					Version, Freshness string
					Resources          []map[string]any
				}
			}
		}
		decode(t, doc, &list)
		for _, g := range list.Items {
			say("group %q after %s", g.Metadata.Name, before)
			before = fmt.Sprintf("%q", g.Metadata.Name)
			at := "the first"
			for _, v := range g.Versions {
				say("version %s of %q after %s %s", v.Version, g.Metadata.Name, at, v.Freshness)
				at = v.Version
				last := "the first"
				for _, r := range v.Resources {
					say("resource %s/%s after %s %s", g.Metadata.Name, v.Version, last, canonical(t, r))
					last = fmt.Sprint(r["resource"])
				}
			}
		}
	}
	var doc struct {
		Info        map[string]string
		Paths       map[string]map[string]any
		Definitions map[string]map[string]any
		Parameters  map[string]any
	}
	decode(t, swagger, &doc)
	say("info %s", doc.Info["version"])
	for path, item := range doc.Paths {
		for method, op := range item {
			say("path %s %s %s", path, method, canonical(t, plain(doc.Parameters, op)))
		}
	}
	for name, schema := range doc.Definitions {
		properties, _ := schema["properties"].(map[string]any)
		delete(schema, "properties")
		for key, value := range schema {
			if key != "description" {
				say("type %s %s %s", name, key, canonical(t, plain(nil, value)))
			}
		}
		for field, property := range properties {
			say("type %s %s %s", name, field, canonical(t, plain(nil, property)))
		}
	}
	return lines
}

// plain returns a part of a document without descriptions, with shared parameters in place of references, which have
// other names here, and parameters sorted.
func plain(shared map[string]any, node any) any {
	switch node := node.(type) {
	case map[string]any:
		if ref, _ := node["$ref"].(string); strings.HasPrefix(ref, "#/parameters/") {
			return plain(nil, shared[strings.TrimPrefix(ref, "#/parameters/")])
		}
		out := map[string]any{}
		for key, value := range node {
			if _, text := value.(string); key != "description" || !text {
				out[key] = plain(shared, value)
			}
		}
		return out
	case []any:
		out := make([]any, len(node))
		for i := range node {
			out[i] = plain(shared, node[i])
		}
		if len(out) > 0 {
			if p, ok := out[0].(map[string]any); ok && p["name"] != nil {
				slices.SortFunc(out, func(a, b any) int {
					return strings.Compare(fmt.Sprint(a.(map[string]any)["name"]), fmt.Sprint(b.(map[string]any)["name"]))
				})
			}
		}
		return out
	}
	return node
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func canonical(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
