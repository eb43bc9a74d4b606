package release

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
)

// Chosen is the emulated release, and the oldest release that other servers of the cluster may have, which
// must be able to read the stored objects. The zero value is invalid; see Defaults.
type Chosen struct {
	Version
	MinCompatibility Version
}

// Defaults returns the choice of a server that is started without these flags.
func Defaults() Chosen { return Chosen{Default, Default.MinCompatibility()} }

// kube is the component whose release is chosen.
const kube = "kube"

// Choose parses the values of --emulated-version and --min-compatibility-version: VERSION or kube=VERSION.
// The errors are those of a stock server.
func Choose(emulated, minCompatibility []string) (Chosen, error) {
	c := Defaults()
	v, set, err := single(emulated)
	if err != nil {
		return c, fmt.Errorf("--emulated-version: %w", err)
	}
	if set {
		c = Chosen{v, v.MinCompatibility()}
	}
	v, set, err = single(minCompatibility)
	if err != nil {
		return c, fmt.Errorf("--min-compatibility-version: %w", err)
	}
	if set {
		c.MinCompatibility = v
	}
	var errs []error
	if !c.Known() {
		errs = append(errs, fmt.Errorf("emulation version %s is not between [%s, %s.0]", c.Version, Oldest, Newest))
	}
	if oldest := min(Oldest, c.Version.MinCompatibility()); c.MinCompatibility > c.Version || c.MinCompatibility < oldest {
		errs = append(errs, fmt.Errorf("minCompatibilityVersion version %s is not between [%s, %s]", c.MinCompatibility, oldest, c.Version))
	}
	return c, utilerrors.NewAggregate(errs)
}

// single reads the values of a flag; false: there is none.
func single(values []string) (v Version, set bool, err error) {
	for _, text := range values {
		component, text, named := strings.Cut(text, "=")
		if !named {
			component, text = kube, component
		}
		component = strings.TrimSpace(component)
		parsed, err := utilversion.Parse(strings.TrimSpace(text))
		switch {
		case err != nil:
			return v, set, err
		case parsed.Patch() != 0:
			return v, set, fmt.Errorf("patch version not allowed, got: %s=%s", component, parsed)
		case component != kube:
			return v, set, errors.New("component not registered: " + component)
		case set:
			return v, set, fmt.Errorf("duplicate version flag, %s=%s and %s=%s", kube, v, kube, parsed)
		case parsed.Major() != major || parsed.Minor() > 1000:
			return v, set, fmt.Errorf("release %s: want one of %s", parsed, Names())
		}
		v, set = Of(int(parsed.Minor())), true
	}
	return v, set, nil
}

// patches are the patch releases that a server may report.
var patches = map[Version]string{V132: "1.32.13", V136: "1.36.2"}

// program is the executable of a stock server, after which it names itself as a field manager.
const program = "kube-apiserver"

// Agent returns the user agent of a server's requests to itself, given that of the oldest release. The recorded
// stock servers of later releases ran from an executable named after the release.
func (v Version) Agent(agent string) string {
	if agent == program && v.Emulated() {
		return program + "-" + v.Binary().String()
	}
	return agent
}

// Patch returns the patch release that a server reports, as "1.32.13".
func (v Version) Patch() string { return patches[v.Binary()] }

// Info returns the version information of a server; build names this program.
func (c Chosen) Info(build string) version.Info {
	binary := c.Version.Binary()
	info := version.Info{
		Major: fmt.Sprint(binary.Major()), Minor: fmt.Sprint(binary.Minor()), GitVersion: "v" + c.Patch() + "+" + build, GitTreeState: "clean",
		BuildDate: "1970-01-01T00:00:00Z", GoVersion: runtime.Version(), Compiler: "gc", Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if c.Emulated() {
		info.EmulationMajor, info.EmulationMinor = fmt.Sprint(c.Major()), fmt.Sprint(c.Minor())
		info.MinCompatibilityMajor, info.MinCompatibilityMinor = fmt.Sprint(c.MinCompatibility.Major()), fmt.Sprint(c.MinCompatibility.Minor())
	}
	return info
}
