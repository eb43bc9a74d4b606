package abac

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsjson "sigs.k8s.io/json"

	"github.com/rowlock/rowlock/authx"
)

const (
	kind      = "Policy"
	longest   = 1 << 20 // bytes of a line
	oldGroup  = "abac.authorization.kubernetes.io"
	version   = "/v1beta1"
	unwritten = "/v0" // version of the form that names none
)

// versions are the spellings of the current one. Files in the field carry the first.
var versions = []string{oldGroup + version, "abac.authorization.k8s.io" + version}

// Load reads a policy file.
func Load(path string) (*Authorizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, path)
}

// Read reads policies. name is the file name for errors, which name a bad line and
// quote nothing of it: another file that is given by mistake may hold secrets.
func Read(r io.Reader, name string) (*Authorizer, error) {
	z := &Authorizer{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longest)
	for n := 1; lines.Scan(); n++ {
		line := lines.Bytes()
		if text := bytes.TrimSpace(line); len(text) == 0 || text[0] == '#' {
			continue
		}
		p, legacy, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("error reading policy file %s, line %d: %w", name, n, err)
		}
		z.Policies = append(z.Policies, p)
		for _, problem := range strange(line, legacy) {
			z.Remarks = append(z.Remarks, fmt.Sprintf("line %d: %v", n, problem))
		}
		if legacy {
			z.Legacy++
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("error reading policy file %s: %w", name, err)
	}
	return z, nil
}

// parse reads one policy. Unknown fields are ignored, and names of fields are compared
// exactly, as everywhere in the API.
func parse(line []byte) (PolicySpec, bool, error) {
	var head struct {
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
	}
	// The standard decoder words errors of syntax as clients know them.
	if err := json.Unmarshal(line, &head); err != nil {
		return PolicySpec{}, false, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	head.APIVersion, head.Kind = "", ""
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(line, &head); err != nil {
		return PolicySpec{}, false, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	switch {
	case slices.Contains(versions, head.APIVersion) && head.Kind == kind:
		p, err := parseVersioned(line)
		return p, false, err
	case head.APIVersion == "" && (head.Kind == "" || head.Kind == kind), head.APIVersion == oldGroup+unwritten && head.Kind == kind:
		p, err := parseLegacy(line)
		return p, true, err
	case head.Kind == "":
		return PolicySpec{}, false, errors.New("Object 'Kind' is missing") //nolint:staticcheck // as clients know it
	case head.APIVersion == "":
		return PolicySpec{}, false, errors.New("Object 'apiVersion' is missing") //nolint:staticcheck // as clients know it
	}
	return PolicySpec{}, false, errors.New("no such kind is registered for its version: want Policy of " + versions[0])
}

// strange returns the unknown and duplicate fields of a policy.
func strange(line []byte, legacy bool) []error {
	var versioned struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Policy            `json:",inline"`
	}
	var old struct {
		metav1.TypeMeta `json:",inline"`
		legacyPolicy    `json:",inline"`
	}
	var into any = &versioned
	if legacy {
		into = &old
	}
	problems, err := sigsjson.UnmarshalStrict(line, into)
	if err != nil { // of metadata, which is not used either
		return nil
	}
	return problems
}

func parseVersioned(line []byte) (PolicySpec, error) {
	var p Policy
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(line, &p); err != nil {
		return PolicySpec{}, err
	}
	s := p.Spec
	if s.User == all || s.Group == all {
		s.User, s.Group = "", authx.GroupAuthenticated
	}
	return s, nil
}

// legacyPolicy is the form without a version: a field that is left out matches anything.
type legacyPolicy struct {
	User      string `json:"user,omitempty"`
	Group     string `json:"group,omitempty"`
	Readonly  bool   `json:"readonly,omitempty"`
	Resource  string `json:"resource,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

func parseLegacy(line []byte) (PolicySpec, error) {
	var old legacyPolicy
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(line, &old); err != nil {
		return PolicySpec{}, err
	}
	s := PolicySpec{User: old.User, Group: old.Group, Readonly: old.Readonly, APIGroup: all, Resource: old.Resource, Namespace: old.Namespace}
	if s.User == "" && s.Group == "" || s.User == all || s.Group == all {
		s.User, s.Group = "", authx.GroupAuthenticated
	}
	if s.Resource == "" && s.Namespace == "" {
		s.NonResourcePath = all
	}
	s.Resource = cmp.Or(s.Resource, all)
	s.Namespace = cmp.Or(s.Namespace, all)
	return s, nil
}
