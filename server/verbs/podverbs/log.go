package podverbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/forms"
	"github.com/rowlock/rowlock/server/relay"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/verbs"
)

// log streams the output of a container. A pod without a node has none yet.
func (d *dialer) log(h *verbs.Handler, c *verbs.Call) error {
	// The route announces plain text, but errors are negotiated: a client that accepts no other form gets no
	// answer.
	if err := codecs.Acceptable(c.R, append([]string{"text/plain"}, forms.Forms{}.Types()...)); err != nil {
		return err
	}
	if _, err := codecs.Negotiate(c.R, codecs.Offer{Types: forms.Forms{}.Types(), Transforms: codecs.PartialTransforms}); err != nil {
		return err
	}
	o, err := logOptions(c.R.URL.Query())
	if err != nil {
		return err
	}
	if d.streams && o.Stream == nil {
		o.Stream = new(corev1.LogStreamAll)
	}
	if errs := append(validateLog(o), d.validateStream(o)...); len(errs) > 0 {
		return status.Invalid(c.Resource.Release, schema.GroupKind{Kind: "PodLogOptions"}, c.Info.Name, errs)
	}
	pod, err := livePod(h, c, c.Info.Name)
	if err != nil {
		return err
	}
	name, err := container(pod, o.Container)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName == "" {
		c.W.WriteHeader(http.StatusNoContent)
		return nil
	}
	to, err := d.agent(c, h, pod.Spec.NodeName)
	if err != nil {
		return err
	}
	to.Path = fmt.Sprintf("/containerLogs/%s/%s/%s", pod.Namespace, pod.Name, name)
	to.RawQuery = logQuery(o).Encode()
	transport := d.agents
	if o.InsecureSkipTLSVerifyBackend {
		transport = d.unchecked
	}
	return stream(c, to, transport, o.Follow)
}

func logOptions(values url.Values) (*corev1.PodLogOptions, error) {
	q := query{values: values}
	o := &corev1.PodLogOptions{
		Container: q.text("container"), Follow: q.flag("follow"), Previous: q.flag("previous"),
		SinceSeconds: q.number("sinceSeconds"), SinceTime: q.time("sinceTime"), Timestamps: q.flag("timestamps"),
		TailLines: q.number("tailLines"), LimitBytes: q.number("limitBytes"),
		InsecureSkipTLSVerifyBackend: q.flag("insecureSkipTLSVerifyBackend"),
	}
	if values.Has("stream") { // an empty value is not a known one
		o.Stream = new(q.text("stream"))
	}
	return o, q.err
}

func validateLog(o *corev1.PodLogOptions) field.ErrorList {
	const positive = "must be greater than 0"
	var errs field.ErrorList
	if o.TailLines != nil && *o.TailLines < 0 {
		errs = append(errs, field.Invalid(field.NewPath("tailLines"), *o.TailLines, validation.IsNegativeErrorMsg))
	}
	if o.LimitBytes != nil && *o.LimitBytes < 1 {
		errs = append(errs, field.Invalid(field.NewPath("limitBytes"), *o.LimitBytes, positive))
	}
	if o.SinceSeconds != nil {
		if o.SinceTime != nil {
			errs = append(errs, field.Forbidden(field.NewPath(""), "at most one of `sinceTime` or `sinceSeconds` may be specified"))
		} else if *o.SinceSeconds < 1 {
			errs = append(errs, field.Invalid(field.NewPath("sinceSeconds"), *o.SinceSeconds, positive))
		}
	}
	return errs
}

// validateStream checks the requested stream. Kubelets that can separate streams cannot return the last lines
// of one.
func (d *dialer) validateStream(o *corev1.PodLogOptions) field.ErrorList {
	at, known := field.NewPath("stream"), []string{corev1.LogStreamStdout, corev1.LogStreamStderr, corev1.LogStreamAll}
	switch {
	case o.Stream == nil:
		return nil
	case !d.streams:
		return field.ErrorList{field.Forbidden(at, "may not be specified")}
	case !slices.Contains(known, *o.Stream):
		return field.ErrorList{field.NotSupported(at, *o.Stream, known)}
	case *o.Stream != corev1.LogStreamAll && o.TailLines != nil:
		return field.ErrorList{field.Forbidden(field.NewPath(""), "`tailLines` and specific `stream` are mutually exclusive for now")}
	}
	return nil
}

// logQuery returns the query for the kubelet.
func logQuery(o *corev1.PodLogOptions) url.Values {
	q := url.Values{}
	for name, on := range map[string]bool{"follow": o.Follow, "previous": o.Previous, "timestamps": o.Timestamps} {
		if on {
			q.Set(name, "true")
		}
	}
	for name, n := range map[string]*int64{"sinceSeconds": o.SinceSeconds, "tailLines": o.TailLines, "limitBytes": o.LimitBytes} {
		if n != nil {
			q.Set(name, strconv.FormatInt(*n, 10))
		}
	}
	if o.Stream != nil {
		q.Set("stream", *o.Stream)
	}
	if o.SinceTime != nil {
		q.Set("sinceTime", o.SinceTime.Format(time.RFC3339))
	}
	return q
}

// maxRefusal bounds the part of a kubelet's error that is read.
const maxRefusal = 10 * 1024

// stream copies a kubelet's answer to the client, and sends each part at once if the answer is endless.
func stream(c *verbs.Call, from *url.URL, transport http.RoundTripper, flush bool) error {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from.String(), nil)
	if err != nil {
		return fmt.Errorf("asking the node agent: %w", err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return status.Plain(fmt.Sprintf("Get %q: %v", from, err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refused(c, resp)
	}
	if relay.WebSocket(c.R.Header) {
		messages(c, resp.Body, cancel)
		return nil
	}
	c.W.Header().Set("Content-Type", "text/plain")
	c.W.WriteHeader(http.StatusOK)
	var w io.Writer = c.W
	if flush {
		w = flusher{c.W, http.NewResponseController(c.W)}
		_ = http.NewResponseController(c.W).Flush() // the client may wait for the header only
	}
	// The answer has begun: it just ends when the client or the kubelet leaves.
	_, _ = io.Copy(w, resp.Body)
	return nil
}

// refused returns the kubelet's error to the client.
func refused(c *verbs.Call, resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("reading the node agent's answer: %w", err))
	}
	text := string(body)
	switch {
	case resp.StatusCode == http.StatusInternalServerError:
		return apierrors.NewInternalError(errors.New(text))
	case resp.StatusCode == http.StatusBadRequest:
		return apierrors.NewBadRequest(text)
	case resp.StatusCode >= http.StatusMultipleChoices && resp.StatusCode < http.StatusBadRequest:
		return apierrors.NewGenericServerResponse(http.StatusBadGateway, "", schema.GroupResource{}, "", "the backend attempted to redirect this request, which is not permitted", 0, true)
	}
	return apierrors.NewGenericServerResponse(resp.StatusCode, c.R.Method, schema.GroupResource{Resource: "pods/log"}, c.Info.Name, text, 0, true)
}

// flusher sends each write immediately.
type flusher struct {
	w  io.Writer
	to *http.ResponseController
}

func (f flusher) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err != nil {
		return n, err
	}
	return n, f.to.Flush()
}
