package recorded

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Releases holds the answers of stock servers of later releases to the scenarios of a folder, if they differ
// from the answers that the scenarios want.
type Releases struct {
	families []string // of the scenarios that were replayed on those servers
	wants    map[answerKey]Want
}

type answerKey struct {
	release, scenario string
	step              int
}

// LoadReleases reads a file as testdata/releases/README.md describes it.
func LoadReleases(path string) (*Releases, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var document struct {
		Families []string
		Answers  []struct {
			Scenario string
			Step     int
			Releases []string
			Want     Want
		}
	}
	if err := json.NewDecoder(packed).Decode(&document); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := &Releases{families: document.Families, wants: map[answerKey]Want{}}
	for _, a := range document.Answers {
		for _, release := range a.Releases {
			r.wants[answerKey{release, a.Scenario, a.Step}] = a.Want
		}
	}
	return r, nil
}

// Of returns the scenarios of list for which it knows the answers of a release, with those as the wanted answers. A
// scenario that was recorded on another release than 1.32 keeps its own.
func (r *Releases) Of(release string, list []*Scenario) []*Scenario {
	var all []*Scenario
	for _, s := range list {
		family, _, _ := strings.Cut(s.Name, "-")
		own := s.Differs != nil
		if !own && !slices.Contains(r.families, family) {
			continue
		}
		theirs := *s
		theirs.Release, theirs.Steps = release, slices.Clone(s.Steps)
		for i := range theirs.Steps {
			if want, ok := r.wants[answerKey{release, s.Name, i}]; ok && !own {
				theirs.Steps[i].Want = want
			}
		}
		all = append(all, &theirs)
	}
	return all
}
