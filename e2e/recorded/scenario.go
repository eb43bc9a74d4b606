// Package recorded replays recorded requests of a stock server against a running one, and compares the answers.
//
// A step counts as equal only if status, content type, warnings and every part of the body that the scenario does
// not exempt are equal after the normalisation that testdata/parity/README.md describes.
package recorded

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Scenario is one file: requests and the answers wanted.
type Scenario struct {
	Name      string `json:"name"`
	About     string `json:"about"`
	Namespace string `json:"namespace"`
	Bare      bool   `json:"bare"`
	// Needs are flags that the recorded server had beyond the usual ones. One that ends
	// in "-file" and has no value takes a file of the player's.
	Needs []string `json:"needs"`
	Vars  []string `json:"vars"` // variables that the replay must define
	// Audit is the audit policy that the server has; nil: none.
	Audit json.RawMessage `json:"audit"`
	Steps []Step          `json:"steps"`
	// Differs are the steps whose answers are not those of 1.32, in a recording of another release.
	Differs []int `json:"differs"`
	// Release is the emulated release of the server, as "1.36"; empty: the default.
	Release string `json:"release"`
}

// Step is one request.
type Step struct {
	Do      string            `json:"do"`
	Body    json.RawMessage   `json:"body"`
	Type    string            `json:"type"`
	Base64  bool              `json:"base64"`
	Accept  *string           `json:"accept"`
	Headers map[string]string `json:"headers"`
	Agent   *string           `json:"agent"`
	As      string            `json:"as"`
	Save    map[string]string `json:"save"`
	Sleep   float64           `json:"sleep"`
	Sort    []string          `json:"sort"`
	Only    []string          `json:"only"`
	Ignore  []string          `json:"ignore"`
	Show    []string          `json:"show"` // headers of the answer that count
	Head    int               `json:"head"` // the number of lines of a text body to compare; 0: all
	Events  int               `json:"events"`
	Seconds float64           `json:"seconds"`
	Want    Want              `json:"want"`
	// Audit are the events that the request leaves, in their order; nil: any. They are compared as
	// bodies are.
	Audit []any `json:"audit"`
}

// Want is the recorded answer.
type Want struct {
	Status          int                `json:"status"`
	Type            string             `json:"type"`
	Warnings        []string           `json:"warnings"`
	RetryAfter      string             `json:"retry-after"`
	Allow           string             `json:"allow"`
	WWWAuthenticate string             `json:"www-authenticate"`
	Headers         map[string]*string `json:"headers"` // of those shown; nil: absent
	Body            any                `json:"body"`
	HasBody         bool               `json:"-"`
}

// UnmarshalJSON keeps whether a body was recorded at all.
func (w *Want) UnmarshalJSON(data []byte) error {
	type plain Want
	if err := json.Unmarshal(data, (*plain)(w)); err != nil {
		return err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return err
	}
	_, w.HasBody = keys["body"]
	return nil
}

// Load reads one file.
func Load(path string) (*Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Scenario{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(path), ".json")
	}
	return s, nil
}

// LoadAll reads the files that match patterns. A pattern that none matches is an error.
func LoadAll(patterns ...string) ([]*Scenario, error) {
	var list []*Scenario
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pattern, err)
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%s: no such files", pattern)
		}
		for _, file := range files {
			s, err := Load(file)
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		}
	}
	return list, nil
}

// Outside is a line of outside.txt, which names the recordings that every run of the tests replays against
// the built binary.
type Outside struct {
	Name string
	Only string // why a server in the test's process cannot answer it; empty: it can
}

// LoadOutside reads outside.txt of a folder.
func LoadOutside(folder string) ([]Outside, error) {
	data, err := os.ReadFile(filepath.Join(folder, "outside.txt"))
	if err != nil {
		return nil, err
	}
	var list []Outside
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, only, _ := strings.Cut(line, " ")
		list = append(list, Outside{name, only})
	}
	return list, nil
}

// NamespaceName returns the namespace the scenario works in.
func (s *Scenario) NamespaceName() string {
	if s.Namespace != "" {
		return s.Namespace
	}
	out := []byte(strings.ToLower(s.Name))
	for i, c := range out {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9') {
			out[i] = '-'
		}
	}
	if len(out) > 50 {
		out = out[:50]
	}
	return string(out)
}

// Waits returns how long a replay of the scenario waits at most: before steps, and for
// further events of watches.
func (s *Scenario) Waits() time.Duration {
	var seconds float64
	for i := range s.Steps {
		seconds += s.Steps[i].Sleep + s.Steps[i].Seconds
	}
	return time.Duration(seconds * float64(time.Second))
}

// Alone reports whether a scenario must run alone: it reads what the whole
// cluster shares (discovery, the default objects), or sets a default that objects of
// other scenarios would take, or a policy or webhook that applies to them, or changes
// flow control.
func (s *Scenario) Alone() bool {
	if s.Bare {
		return true
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		body := string(step.Body)
		policy := len(step.Body) > 0 && strings.Contains(step.Do, "/apis/admissionregistration.k8s.io/")
		flow := !strings.HasPrefix(step.Do, "GET ") && strings.Contains(step.Do, "/apis/flowcontrol.apiserver.k8s.io/")
		if policy || flow || strings.Contains(body, "is-default-class") || strings.Contains(body, `"globalDefault"`) || sharedRead.MatchString(step.Do) {
			return true
		}
	}
	return false
}

// Flags returns the flags of the recorded server in addition to the usual ones: its release, the flags in
// Needs, and those after "Server flags:" in About.
func (s *Scenario) Flags() []string {
	flags := slices.Clone(s.Needs)
	if s.Release != "" {
		flags = append(flags, "--emulated-version="+s.Release)
	}
	_, text, _ := strings.Cut(s.About, "Server flags:")
	for _, word := range strings.Fields(text) {
		if strings.HasPrefix(word, "--") {
			flags = append(flags, strings.TrimRight(word, ".,;"))
		}
	}
	return flags
}

// Kind returns what the server of a scenario has that not every server has: scenarios of one kind may
// share one.
func (s *Scenario) Kind() string { return strings.Join(s.Flags(), " ") + "\n" + string(s.Audit) }

// ByFlags parts scenarios by the flags, and the audit policy, that their servers need, those
// that need none first.
func ByFlags(list []*Scenario) [][]*Scenario {
	groups := [][]*Scenario{nil}
	at := map[string]int{(&Scenario{}).Kind(): 0}
	for _, s := range list {
		key := s.Kind()
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], s)
	}
	if groups[0] == nil {
		return groups[1:]
	}
	return groups
}

// sharedRead matches reads of discovery documents and of cluster-wide lists.
var sharedRead = regexp.MustCompile(`^(GET|WATCH) /(api|apis)(/[a-z0-9.]+(/v[0-9][a-z0-9]*)?)?(\?|$)`)
