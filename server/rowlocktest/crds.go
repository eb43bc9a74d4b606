package rowlocktest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// CRDs serves the definitions in files and folders, and others, and waits until they are
// served. See the option CRDs.
func (s *Server) CRDs(paths []string, more ...*apiextensionsv1.CustomResourceDefinition) {
	s.t.Helper()
	list, err := read(paths)
	if err == nil {
		err = s.plane.Define(s.t.Context(), append(list, more...)...)
	}
	if err != nil {
		s.t.Fatalf("rowlocktest: %v", err)
	}
}

// read finds the definitions in files and folders.
func read(paths []string) (list []*apiextensionsv1.CustomResourceDefinition, err error) {
	for _, path := range paths {
		before := len(list)
		err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
				return err
			}
			found, err := readFile(file)
			list = append(list, found...)
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(list) == before {
			return nil, fmt.Errorf("%s has no CustomResourceDefinition", path)
		}
	}
	return list, nil
}

func readFile(file string) (list []*apiextensionsv1.CustomResourceDefinition, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		var is metav1.TypeMeta
		if err == nil {
			err = yaml.Unmarshal(document, &is)
		}
		if err == nil && is.Kind == "CustomResourceDefinition" && is.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
			err = fmt.Errorf("definitions of %s are not served since release 1.22", is.APIVersion)
		}
		if err == nil && is.Kind == "CustomResourceDefinition" {
			d := &apiextensionsv1.CustomResourceDefinition{}
			list, err = append(list, d), yaml.UnmarshalStrict(document, d)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
}
