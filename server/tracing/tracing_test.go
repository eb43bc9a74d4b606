package tracing_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/rowlock/rowlock/server/tracing"
	"github.com/rowlock/rowlock/server/tracing/otlp"
	"github.com/rowlock/rowlock/server/tracing/tracingtest"
)

func TestLoad(t *testing.T) {
	head := func(version string) string {
		return "apiVersion: apiserver.config.k8s.io/" + version + "\nkind: TracingConfiguration\n"
	}
	const noV1 = `failed to read tracing config: unable to decode tracing configuration data: no kind "TracingConfiguration" is registered for version "apiserver.config.k8s.io/v1"`
	for _, c := range []struct {
		name, text, err string
		v1              bool
	}{
		{"v1", head("v1") + "endpoint: localhost:4317\n", "", true},
		{"v1 before 1.33", head("v1"), noV1, false},
		{"beta where v1 is known", head("v1beta1"), "", true},
		{"alpha", head("v1alpha1") + "endpoint: localhost:4317\nsamplingRatePerMillion: 100\n", "", false},
		{"beta", head("v1beta1"), "", false},
		{"socket", head("v1beta1") + "endpoint: unix:///run/otel.sock\n", "", false},
		{"other version", head("v2"), `registered for version "apiserver.config.k8s.io/v2"`, true},
		{"unknown field", head("v1beta1") + "rate: 1\n", `strict decoding error: unknown field "rate"`, false},
		{"negative", head("v1beta1") + "samplingRatePerMillion: -1\n", "failed to validate tracing configuration: samplingRatePerMillion: Invalid value: -1: sampling rate must be positive", false},
		{"too many", head("v1beta1") + "samplingRatePerMillion: 1000001\n", "samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one million", false},
		{"scheme", head("v1beta1") + "endpoint: http://localhost:4317\n", `endpoint: Invalid value: "http://localhost:4317": unsupported scheme: http.  Options are none, dns, unix, or unix-abstract.`, false},
	} {
		path := filepath.Join(t.TempDir(), "tracing.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := tracing.Load(path, c.v1)
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %s", c.name, err, c.err)
		}
	}
	if _, err := tracing.Load("/none", false); err == nil || err.Error() != "tracing-config-file /none does not exist" {
		t.Errorf("no file: %v", err)
	}
}

func tracer(t *testing.T, endpoint string, rate int32) *tracing.Tracer {
	t.Helper()
	tr, err := tracing.New(&tracing.Config{Endpoint: &endpoint, SamplingRatePerMillion: &rate}, tracing.Settings{ServerID: "x", Exporter: otlp.Through(nil), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

const theirTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

func TestSpans(t *testing.T) {
	c := tracingtest.Start(t)
	tr := tracer(t, c.Address, 1000000)
	if !tr.Sample() {
		t.Fatal("a request is not sampled though all are to be")
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Traceparent", "00-"+theirTrace+"-00f067aa0ba902b7-01")
	ctx, span := tr.Request(r, "GET")
	span.Text("which", "one")
	span.Text("long", strings.Repeat("x", 10000))
	within, below := tracing.Start(ctx, "below")
	below.Fail()
	out := http.Header{"Tracestate": {"theirs=1"}}
	tr.Inject(within, out)
	below.End()
	span.End()
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	list := c.Spans("which", "one")
	if len(list) != 2 {
		t.Fatalf("spans: %+v", list)
	}
	first, second := list[1], list[0] // in the order of their ends
	if first.Name != "GET" || first.Parent != "" || second.Name != "below" || second.Parent != "GET" || !second.Failed || first.Failed {
		t.Errorf("spans: %+v", list)
	}
	if first.Trace == theirTrace || len(first.Links) != 1 || first.Links[0] != theirTrace {
		t.Errorf("the client's trace is to be a link: %+v", first)
	}
	if n := len(first.Texts["long"]); n != 1024 {
		t.Errorf("an attribute has %d bytes", n)
	}
	if got, want := out.Get("Traceparent"), "00-"+second.Trace+"-"+second.ID+"-01"; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	if out.Get("Tracestate") != "" {
		t.Error("the trace headers of the client are passed on")
	}
}

// TestSampledOut: no client can have its requests traced, and an untraced request costs nothing.
func TestSampledOut(t *testing.T) {
	tr := tracer(t, "127.0.0.1:1", 0)
	if tr.Sample() || (*tracing.Tracer)(nil).Sample() {
		t.Error("a request is sampled though none is to be")
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		_ = tr.Sample()
		_, span := tracing.Start(ctx, "below")
		span.Text("a", "b")
		span.Number("c", 1)
		span.Fail()
		span.End()
		tr.Page(nil).End()
	}); n != 0 {
		t.Errorf("%v allocations for what is not traced", n)
	}
	h := http.Header{"Traceparent": {"00-" + theirTrace + "-00f067aa0ba902b7-01"}, "Tracestate": {"a=b"}}
	tr.Inject(ctx, h)
	if got := h.Get("Traceparent"); len(got) != 55 || !strings.HasSuffix(got, "-00") || strings.Contains(got, theirTrace) || h.Get("Tracestate") != "" {
		t.Errorf("others get %v", h)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}

func TestRate(t *testing.T) {
	tr := tracer(t, "127.0.0.1:1", 500000)
	sampled := 0
	for range 10000 {
		if tr.Sample() {
			sampled++
		}
	}
	if sampled < 4000 || sampled > 6000 {
		t.Errorf("%d of 10000 requests are sampled, at a rate of a half", sampled)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}

// A server that is to trace and cannot tell anybody does not start; nor does one whose exporter
// cannot be made.
func TestNoExporter(t *testing.T) {
	rate := int32(1)
	broken := errors.New("no such place")
	for name, tt := range map[string]struct {
		exporter func(*string) (sdktrace.SpanExporter, error)
		want     string
	}{
		"none":   {nil, "nothing sends spans"},
		"broken": {func(*string) (sdktrace.SpanExporter, error) { return nil, broken }, broken.Error()},
	} {
		_, err := tracing.New(&tracing.Config{SamplingRatePerMillion: &rate}, tracing.Settings{Exporter: tt.exporter})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkSampledOut(b *testing.B) {
	rate := int32(0)
	tr, err := tracing.New(&tracing.Config{SamplingRatePerMillion: &rate}, tracing.Settings{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = tr.Sample()
		_, span := tracing.Start(context.Background(), "x")
		span.End()
	}
}

// The page of the feed that shows a traced commit is traced, and each is linked with the other.
func TestPage(t *testing.T) {
	c := tracingtest.Start(t)
	tr := tracer(t, c.Address, 1)
	ctx, request := tr.Request(httptest.NewRequest("PUT", "/", nil), "PUT")
	request.Text("which", "write")
	_, commit := tracing.Start(ctx, "store commit")
	page := tr.Page([]*tracing.Span{&commit})
	page.Text("which", "page")
	page.Number("rows", 3)
	page.End()
	commit.End()
	request.End()
	var unsampled tracing.Tracer
	if unsampled.Page(nil).On() || (*tracing.Tracer)(nil).Page(nil).On() || unsampled.Page([]*tracing.Span{&commit}).On() {
		t.Error("a page is traced where nothing is")
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	write, feed := c.Spans("which", "write"), c.Spans("which", "page")
	if len(write) != 2 || len(feed) != 1 {
		t.Fatalf("spans: %+v, %+v", write, feed)
	}
	if f := feed[0]; f.Name != "feed" || f.Parent != "" || f.Trace == write[0].Trace || len(f.Links) != 1 || f.Links[0] != write[0].Trace {
		t.Errorf("the page's: %+v", f)
	}
	if w := write[0]; w.Name != "store commit" || len(w.Links) != 1 || w.Links[0] != feed[0].Trace {
		t.Errorf("the commit's: %+v", w)
	}
}

// TestSpansKeepNoRequest: spans that wait for the collector keep nothing of the texts that their names and attributes are parts of.
func TestSpansKeepNoRequest(t *testing.T) {
	c := tracingtest.Start(t)
	release := c.Hold()
	tr := tracer(t, c.Address, 1000000)
	var gone atomic.Bool
	func() {
		line := []byte("DELETE /" + strings.Repeat("a", 1<<20))
		runtime.AddCleanup(&line[0], func(struct{}) { gone.Store(true) }, struct{}{})
		text := unsafe.String(&line[0], len(line))
		_, span := tr.Request(httptest.NewRequest("GET", "/", nil), text[:6])
		span.Text("http.method", text[:6])
		span.Text("http.target", text[7:])
		span.End()
	}()
	for end := time.Now().Add(time.Minute); !gone.Load() && time.Now().Before(end); runtime.GC() { // cleanups run soon after
	}
	release()
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	if !gone.Load() {
		t.Error("a span keeps a whole request")
	}
	if list := c.Spans("http.method", "DELETE"); len(list) != 1 || list[0].Name != "DELETE" || len(list[0].Texts["http.target"]) != 1024 {
		t.Errorf("spans: %.2000v", list)
	}
}

// A collector that answers nothing delays no request: what is more than the queue holds is lost.
func TestCollectorThatStalls(t *testing.T) {
	c := tracingtest.Start(t)
	release := c.Hold()
	tr := tracer(t, c.Address, 1000000)
	const requests = 10000
	for range requests {
		ctx, span := tr.Request(httptest.NewRequest("GET", "/", nil), "GET")
		_, below := tracing.Start(ctx, "below")
		below.End()
		span.End()
	}
	release()
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	// One batch is under way, and the queue is full behind it.
	if n := c.Len(); n < 1 || n > 2048+2*512 {
		t.Errorf("%d of %d spans were kept", n, 2*requests)
	}
}
