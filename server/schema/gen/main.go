// Command gen reads the Go sources of the API types and writes the tables that the server
// needs at run time: definitions.txt, the OpenAPI definitions without their descriptions,
// and markers.txt, how lists, maps and structs merge; each as text, and compressed as the
// server embeds it. Both describe the oldest supported release, and the differences of the newest. They depend only on
// the versions of the modules.
//
// Usage: gen [-check] directory. With -check it writes nothing and fails if a file
// there is out of date.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/rowlock/rowlock/server/release/gen/generate"
)

// oldest and newest are the versions of the modules whose sources are read. The newest also serves for the
// releases in between, as their servers are binaries of the newest release (see release.Version.Emulated).
const oldest, newest = "v0.32.13", "v0.36.2"

// since are packages that the oldest release does not have.
var since = []string{
	"k8s.io/api/certificates/v1beta1",
	"k8s.io/api/coordination/v1beta1",
	"k8s.io/api/resource/v1",
	"k8s.io/api/resource/v1alpha3",
	"k8s.io/api/resource/v1beta2",
	"k8s.io/api/scheduling/v1alpha2",
	"k8s.io/api/storagemigration/v1beta1",
}

// packages hold the types of all served kinds and those that they refer to.
var packages = []string{
	"k8s.io/api/admissionregistration/v1",
	"k8s.io/api/admissionregistration/v1alpha1",
	"k8s.io/api/admissionregistration/v1beta1",
	"k8s.io/api/apiserverinternal/v1alpha1",
	"k8s.io/api/apps/v1",
	"k8s.io/api/authentication/v1",
	"k8s.io/api/authentication/v1beta1",
	"k8s.io/api/authorization/v1",
	"k8s.io/api/autoscaling/v1",
	"k8s.io/api/autoscaling/v2",
	"k8s.io/api/batch/v1",
	"k8s.io/api/certificates/v1",
	"k8s.io/api/certificates/v1alpha1",
	"k8s.io/api/coordination/v1",
	"k8s.io/api/coordination/v1alpha2",
	"k8s.io/api/core/v1",
	"k8s.io/api/discovery/v1",
	"k8s.io/api/events/v1",
	"k8s.io/api/flowcontrol/v1",
	"k8s.io/api/networking/v1",
	"k8s.io/api/networking/v1beta1",
	"k8s.io/api/node/v1",
	"k8s.io/api/policy/v1",
	"k8s.io/api/rbac/v1",
	"github.com/rowlock/rowlock/server/removed/k8s.io/api/resource/v1alpha3",
	"k8s.io/api/resource/v1beta1",
	"k8s.io/api/scheduling/v1",
	"k8s.io/api/storage/v1",
	"k8s.io/api/storage/v1alpha1",
	"k8s.io/api/storage/v1beta1",
	"github.com/rowlock/rowlock/server/removed/k8s.io/api/storagemigration/v1alpha1",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
	"k8s.io/apimachinery/pkg/api/resource",
	"k8s.io/apimachinery/pkg/apis/meta/v1",
	"k8s.io/apimachinery/pkg/runtime",
	"k8s.io/apimachinery/pkg/types",
	"k8s.io/apimachinery/pkg/util/intstr",
	"k8s.io/apimachinery/pkg/version",
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1",
}

func main() {
	check := flag.Bool("check", false, "compare instead of writing")
	flag.Parse()
	if err := run(flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	old, err := load(oldest, packages)
	if err != nil {
		return err
	}
	latest, err := load(newest, append(slices.Clone(packages), since...))
	if err != nil {
		return err
	}
	definitions, err := old.definitions(latest)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"definitions.txt": definitions, "markers.txt": old.markers(latest)} {
		file := filepath.Join(dir, name)
		if check {
			err = compare(file, data)
		} else {
			err = generate.Write(file, data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compare fails if one of the files is out of date. It compares the contents of compressed files: another release of Go may
// compress differently.
func compare(file string, data []byte) error {
	have, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	packed, err := os.Open(file + ".gz")
	if err != nil {
		return err
	}
	defer packed.Close()
	zr, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	inside, err := io.ReadAll(zr)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, data) || !bytes.Equal(inside, data) {
		return fmt.Errorf("%s or its compressed form is out of date: run go generate", file)
	}
	return nil
}
