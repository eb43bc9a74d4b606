package json_test

import (
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json/scan"
)

// TestYield: reading and writing a large value lets a goroutine continue that waits for the processor.
func TestYield(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	yields := func(name string, work func()) {
		var ran atomic.Bool
		go ran.Store(true)
		if work(); !ran.Load() {
			t.Error(name)
		}
	}
	for name, text := range map[string]string{
		"members":  `{"a":"` + strings.Repeat("a", 1<<16) + `","b":"b"}`,
		"elements": `{"a":["` + strings.Repeat("a", 1<<16) + `","b"]}`,
	} {
		var tree map[string]any
		yields("decoding "+name, func() {
			if _, err := fast.Unmarshal([]byte(text), &tree, codecs.Strict); err != nil {
				t.Error(err)
			}
		})
		yields("encoding "+name, func() {
			if _, err := fast.Append(nil, tree); err != nil {
				t.Error(err)
			}
		})
	}
	many := map[string]any{}
	for i := range 5000 { // fewer than 64 KB
		many[strconv.Itoa(i)] = true
	}
	yields("sorting names", func() {
		if _, err := fast.Append(nil, many); err != nil {
			t.Error(err)
		}
	})
	yields("counting", func() {
		if n := scan.Containers([]byte(`[`+strings.Repeat("[],", 1<<16)+`[]]`), 0); n != 1<<16+2 {
			t.Error(n)
		}
	})
	yields("encoding a slice of a type", func() {
		if _, err := fast.Append(nil, &metav1.APIVersions{Versions: []string{strings.Repeat("b", 1<<16), "c"}}); err != nil {
			t.Error(err)
		}
	})
}
