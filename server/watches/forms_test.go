package watches_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestColumnsOfAWatch: only the first table of a watch has column definitions, whether it is that of an existing
// object or of a change.
func TestColumnsOfAWatch(t *testing.T) {
	s := newSite(t)
	before := s.PutConfigMaps()
	builtin := s.Cache.Snapshot("apiservices.apiregistration.k8s.io").Len()
	for _, name := range []string{"v1.one", "v1.two"} {
		s.Put("apiservices.apiregistration.k8s.io", "", name, `{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1","metadata":{"name":"`+name+`"}}`)
	}
	for path, want := range map[string]string{
		"/api/v1/namespaces/ns/configmaps?resourceVersion=0":                    "100000",
		fmt.Sprint("/api/v1/namespaces/ns/configmaps?resourceVersion=", before): "10",
		// Those of the built-in groups come first.
		"/apis/apiregistration.k8s.io/v1/apiservices?resourceVersion=0":                    strings.Repeat("1", builtin+2),
		fmt.Sprint("/apis/apiregistration.k8s.io/v1/apiservices?resourceVersion=", before): "11",
	} {
		_, _, b := s.Fetch(t, path+"&watch=1&timeoutSeconds=1", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		got := ""
		for line := range bytes.Lines(b) {
			var e struct {
				Object struct{ ColumnDefinitions []any }
			}
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			got += fmt.Sprint(min(1, len(e.Object.ColumnDefinitions)))
		}
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestWatchInProtobuf(t *testing.T) {
	s := newSite(t)
	before := s.PutConfigMaps()
	_, header, b := s.Fetch(t, fmt.Sprint("/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=1&resourceVersion=", before), "Accept", codecs.Protobuf)
	if got := header.Get("Content-Type"); got != "application/vnd.kubernetes.protobuf;stream=watch" {
		t.Error(got)
	}
	var got []string
	for len(b) > 0 {
		n := binary.BigEndian.Uint32(b)
		var e metav1.WatchEvent
		if err := e.Unmarshal(b[4 : 4+n]); err != nil {
			t.Fatal(err)
		}
		var unknown runtime.Unknown
		cm := &corev1.ConfigMap{}
		if err := unknown.Unmarshal(e.Object.Raw[len(protobuf.Prefix):]); err != nil {
			t.Fatal(err)
		}
		if err := cm.Unmarshal(unknown.Raw); err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Type+" "+unknown.Kind+" "+cm.Name+"="+cm.Data["v"])
		b = b[4+n:]
	}
	if fmt.Sprint(got) != "[MODIFIED ConfigMap b=2 ADDED ConfigMap f=1]" {
		t.Error(got)
	}
}

func TestWatchOnAWebSocket(t *testing.T) {
	s := newSite(t)
	before := s.PutConfigMaps()
	ws, err := websocket.Dial(strings.Replace(s.Plain, "http", "ws", 1)+
		fmt.Sprint("/api/v1/namespaces/ns/configmaps?watch=1&resourceVersion=", before), "", s.Plain)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	for _, want := range []string{"MODIFIED b=2", "ADDED f=1"} {
		var text string
		if err := websocket.Message.Receive(ws, &text); err != nil {
			t.Fatal(err)
		}
		var e servertest.Event
		if err := json.Unmarshal([]byte(text), &e); err != nil || !strings.HasPrefix(e.String(), want) {
			t.Errorf("%s, want %s", text, want)
		}
	}
	revision := s.Put("configmaps", "ns", "g", servertest.ConfigMap("g", "", "live"))
	var e servertest.Event
	if err := websocket.JSON.Receive(ws, &e); err != nil || e.String() != fmt.Sprintf("ADDED g=live@%d", revision) {
		t.Errorf("%v %v", e, err)
	}
}
