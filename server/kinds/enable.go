package kinds

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/rowlock/rowlock/server/release"
)

// general matches versions that are served unless they are turned off; others are served
// where they are turned on.
var general = regexp.MustCompile(`^v\d+$`)

// General reports whether a version is one of general availability.
func General(version string) bool { return general.MatchString(version) }

// stages are the keys for all versions of a stage, from the weakest to
// the strongest.
var stages = []struct {
	key     string
	pattern *regexp.Regexp
}{
	{"api/all", regexp.MustCompile(``)},
	{"api/ga", general},
	{"api/beta", regexp.MustCompile(`^v\d+beta\d+$`)},
	{"api/alpha", regexp.MustCompile(`^v\d+alpha\d+$`)},
}

// flowControl lists the keys that decide, from the strongest to the weakest, whether the group that
// classifies requests is served.
var flowControl = []string{"flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all"}

// unserved are further versions that every release knows; see also retired.
var unserved = []string{
	"admission.k8s.io/v1", "admission.k8s.io/v1beta1", "apiextensions.k8s.io/v1beta1", "apiregistration.k8s.io/v1beta1",
	"imagepolicy.k8s.io/v1alpha1",
}

// ParseRuntimeConfig parses the pairs of --runtime-config: KEY=VALUE, or KEY alone.
func ParseRuntimeConfig(pairs []string) map[string]string {
	config := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		config[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	return config
}

// Enable turns resources on and off (Resource.Off) before they are added to a Catalogue. Keys of config are
// "group/version", "group/version/resource" and those for all versions of a stage: "api/all", "api/ga",
// "api/beta", "api/alpha". More specific keys take precedence. An empty value is "true". fair means that
// requests are classified by flow control, which must then be served; gate reports which feature gates are
// on. The errors are those of a stock server of the release. Remarks name resources that were turned on
// without effect.
func Enable(v release.Version, resources []*Resource, config map[string]string, fair bool, gate func(string) bool) (remarks []string, err error) {
	known := knownVersions(v, resources)
	if err := checkKeys(config, known, fair); err != nil {
		return nil, err
	}
	e := &enablement{known: known, versions: map[schema.GroupVersion]bool{}, resources: map[schema.GroupVersionResource]bool{}}
	if err := e.readStages(config); err != nil {
		return nil, err
	}
	if err := e.readKeys(config); err != nil {
		return nil, err
	}
	if err := e.checkLater(v, resources); err != nil {
		return nil, err
	}
	served := make(map[schema.GroupVersion]bool)
	for _, r := range resources {
		if on, ok := e.of(r); ok {
			r.Off = !on
		}
		served[r.GVR().GroupVersion()] = true
		if r.Off || r.Gate == "" || gate(r.Gate) {
			continue
		}
		r.Off = true
		if e.named(r) {
			remarks = append(remarks, fmt.Sprintf("%s of %s is turned on, and needs the feature gate %s", r.Plural, r.APIVersion(), r.Gate))
		}
	}
	for gv, on := range e.versions {
		if on && !e.byStage[gv] && !served[gv] {
			remarks = append(remarks, fmt.Sprintf("%s is turned on, and has nothing that this server serves", gv))
		}
	}
	slices.Sort(remarks)
	return remarks, nil
}

// enablement holds the settings of versions and of single resources.
type enablement struct {
	known     map[schema.GroupVersion]bool
	versions  map[schema.GroupVersion]bool
	byStage   map[schema.GroupVersion]bool
	resources map[schema.GroupVersionResource]bool
}

// of returns the setting for a resource, if there is one.
func (e *enablement) of(r *Resource) (on, set bool) {
	if on, set = e.resources[r.GVR()]; !set {
		on, set = e.versions[r.GVR().GroupVersion()]
	}
	return on, set
}

// named reports whether the configuration names a resource or its version, and not only a stage.
func (e *enablement) named(r *Resource) bool {
	gv := r.GVR().GroupVersion()
	_, single := e.resources[r.GVR()]
	return single || e.versions[gv] && !e.byStage[gv]
}

func (e *enablement) readStages(config map[string]string) error {
	e.byStage = map[schema.GroupVersion]bool{}
	for _, s := range stages {
		value, ok := config[s.key]
		if !ok {
			continue
		}
		value = cmp.Or(value, "true")
		if value != "true" && value != "false" {
			return fmt.Errorf("invalid value %s=%s", s.key, value)
		}
		for gv := range e.known {
			if s.pattern.MatchString(gv.Version) {
				e.versions[gv], e.byStage[gv] = value == "true", true
			}
		}
	}
	return nil
}

func (e *enablement) readKeys(config map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if isStage(key) {
			continue
		}
		parts := strings.Split(key, "/")
		gv := schema.GroupVersion{Group: parts[0], Version: parts[1]}
		if !e.known[gv] {
			return fmt.Errorf("group version %s that has not been registered", gv)
		}
		on := true
		if value := config[key]; value != "" {
			var err error
			if on, err = strconv.ParseBool(value); err != nil {
				return fmt.Errorf("invalid value of %s: %s, err: %w", key, value, err)
			}
		}
		if len(parts) == 2 {
			e.versions[gv], e.byStage[gv] = on, false
			continue
		}
		if strings.ToLower(parts[2]) != parts[2] {
			return fmt.Errorf("invalid key %s: group/version/resource and resource is always lowercase plural, not %q", key, parts[2])
		}
		e.resources[gv.WithResource(parts[2])] = on
	}
	return nil
}

func isStage(key string) bool {
	for _, s := range stages {
		if s.key == key {
			return true
		}
	}
	return false
}

// knownVersions returns the versions that may be named.
func knownVersions(v release.Version, resources []*Resource) map[schema.GroupVersion]bool {
	known := make(map[schema.GroupVersion]bool)
	for _, r := range resources {
		known[r.GVR().GroupVersion()] = true
	}
	for _, text := range unserved {
		group, version, _ := strings.Cut(text, "/")
		known[schema.GroupVersion{Group: group, Version: version}] = true
	}
	for _, gv := range retiredVersions(v) {
		known[gv] = true
	}
	for _, k := range later(v) {
		known[k.GroupVersion()] = true
	}
	return known
}

// later returns the kinds that a server which emulates a release knows and does not serve yet.
func later(v release.Version) []schema.GroupVersionKind {
	return slices.DeleteFunc(release.Kinds(), func(k schema.GroupVersionKind) bool {
		return !v.Binary().Knows(k) || v.Introduced(k)
	})
}

// checkLater refuses to enable, by name, a resource or version that a later release introduces. A stock server's errors
// recommend a flag that serves them nevertheless; here such a server has to emulate the later release.
func (e *enablement) checkLater(v release.Version, resources []*Resource) error {
	now := make(map[schema.GroupVersion]bool)
	for _, r := range resources {
		now[r.GVR().GroupVersion()] = true
	}
	kinds := later(v)
	for _, k := range kinds {
		gv := k.GroupVersion()
		if plural, _ := meta.UnsafeGuessKindToResource(k); e.resources[plural] {
			return fmt.Errorf("cannot enable resource %s in runtime-config because it is introduced at %[2]s after the current version %[3]s. Consider setting --emulated-version=%[2]s", plural, introduced(v, k), v)
		}
		if !now[gv] && e.versions[gv] && !e.byStage[gv] {
			first := introduced(v, k)
			for _, other := range kinds {
				if other.GroupVersion() == gv {
					first = min(first, introduced(v, other))
				}
			}
			return fmt.Errorf("cannot enable version %s in runtime-config because all the resources have been introduced after the current version %s. Consider setting --emulated-version=%s", gv, v, first)
		}
	}
	return nil
}

// introduced returns the release that introduces a kind, as a server that emulates v knows it.
func introduced(v release.Version, k schema.GroupVersionKind) release.Version {
	return release.Of(v.Binary().Lifecycle(k).Introduced)
}

// checkKeys finds keys that cannot be meant.
func checkKeys(config map[string]string, known map[schema.GroupVersion]bool, fair bool) error {
	var errs []error
	for _, key := range flowControl {
		value, ok := config[key]
		if ok && fair && value == "false" {
			errs = append(errs, fmt.Errorf("--runtime-config=%s=false conflicts with --enable-priority-and-fairness=true", key))
		}
		if ok && (value == "false" || value == "true" || value == "") {
			break
		}
	}
	if len(config) == 1 && config["api/all"] == "false" {
		return utilerrors.NewAggregate(append(errs, fmt.Errorf("invalid key with only api/all=false")))
	}
	groups := make(map[string]bool)
	for gv := range known {
		groups[gv.Group] = true
	}
	var strange []string
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if isStage(key) {
			continue
		}
		parts := strings.Split(key, "/")
		if len(parts) != 2 && len(parts) != 3 {
			return utilerrors.NewAggregate(append(errs, fmt.Errorf("runtime-config invalid key %s", key)))
		}
		if !groups[parts[0]] && !slices.Contains(strange, parts[0]) {
			strange = append(strange, parts[0])
		}
	}
	if len(strange) > 0 {
		errs = append(errs, fmt.Errorf("unknown api groups %s", strings.Join(strange, ",")))
	}
	return utilerrors.NewAggregate(errs)
}
