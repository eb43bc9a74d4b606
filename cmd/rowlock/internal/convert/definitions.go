package convert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/server/convert"
)

// definitions reads definitions of custom resources from a server. Webhooks that are Services are called through
// the server's proxy, with the rights of the kubeconfig's user.
type definitions struct {
	server string
	client *http.Client
	known  map[schema.GroupKind]*convert.Definition
}

// maxAnswer is the largest answer in bytes.
const maxAnswer = 64 << 20

func newDefinitions(kubeconfig, context string) (*definitions, error) {
	server, client, err := remote.Dial("--kubeconfig", kubeconfig, context)
	if err != nil {
		return nil, err
	}
	return &definitions{server: server, client: client}, nil
}

func (d *definitions) find(ctx context.Context, group, kind string) (*convert.Definition, error) {
	if d.known == nil {
		if err := d.load(ctx); err != nil {
			return nil, err
		}
	}
	return d.known[schema.GroupKind{Group: group, Kind: kind}], nil
}

func (d *definitions) load(ctx context.Context) error {
	known := map[schema.GroupKind]*convert.Definition{}
	next := ""
	for {
		var list apiextensionsv1.CustomResourceDefinitionList
		err := call(ctx, d.client, http.MethodGet, d.server+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions?limit=100&continue="+url.QueryEscape(next), nil, &list)
		if err != nil {
			return err
		}
		for i := range list.Items {
			c := &list.Items[i]
			one := &convert.Definition{}
			for _, v := range c.Spec.Versions {
				if v.Storage {
					one.Versions = append([]string{v.Name}, one.Versions...)
				} else {
					one.Versions = append(one.Versions, v.Name)
				}
			}
			if conversion := c.Spec.Conversion; conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter {
				if conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
					return fmt.Errorf("%s has a webhook without an address", c.Name)
				}
				one.Webhook = d.webhook(conversion.Webhook)
			}
			known[schema.GroupKind{Group: c.Spec.Group, Kind: c.Spec.Names.Kind}] = one
		}
		if next = list.Continue; next == "" {
			d.known = known
			return nil
		}
	}
}

// webhook calls a conversion webhook, as a server would.
func (d *definitions) webhook(hook *apiextensionsv1.WebhookConversion) func(context.Context, []convert.Object, schema.GroupVersion) ([]convert.Object, error) {
	return func(ctx context.Context, objs []convert.Object, to schema.GroupVersion) ([]convert.Object, error) {
		client, address, err := d.address(hook.ClientConfig)
		if err != nil {
			return nil, err
		}
		review := &apiextensionsv1.ConversionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"},
			Request:  &apiextensionsv1.ConversionRequest{UID: types.UID(uuid.NewString()), DesiredAPIVersion: to.String()},
		}
		for _, obj := range objs {
			data, err := json.Marshal(obj)
			if err != nil {
				return nil, err
			}
			review.Request.Objects = append(review.Request.Objects, runtime.RawExtension{Raw: data})
		}
		var answer apiextensionsv1.ConversionReview
		if err := call(ctx, client, http.MethodPost, address, review, &answer); err != nil {
			return nil, err
		}
		r := answer.Response
		switch {
		case r == nil || r.UID != review.Request.UID:
			return nil, errors.New("the webhook answers something else")
		case r.Result.Status != metav1.StatusSuccess:
			return nil, fmt.Errorf("the webhook says: %s", r.Result.Message)
		case len(r.ConvertedObjects) != len(objs):
			return nil, fmt.Errorf("the webhook answers %d objects to %d", len(r.ConvertedObjects), len(objs))
		}
		out := make([]convert.Object, len(objs))
		for i, raw := range r.ConvertedObjects {
			if err := json.Unmarshal(raw.Raw, &out[i]); err != nil {
				return nil, fmt.Errorf("the webhook's answer: %w", err)
			}
			if out[i]["apiVersion"] != to.String() {
				return nil, fmt.Errorf("the webhook answers version %v", out[i]["apiVersion"])
			}
		}
		return out, nil
	}
}

// address finds how to call a webhook: by its URL, or through the server's proxy.
func (d *definitions) address(c *apiextensionsv1.WebhookClientConfig) (*http.Client, string, error) {
	if s := c.Service; s != nil {
		port, path := 443, ""
		if s.Port != nil {
			port = int(*s.Port)
		}
		if s.Path != nil {
			path = *s.Path
		}
		return d.client, d.server + "/api/v1/namespaces/" + url.PathEscape(s.Namespace) + "/services/https:" + url.PathEscape(s.Name) + ":" + strconv.Itoa(port) + "/proxy" + path, nil
	}
	if c.URL == nil {
		return nil, "", errors.New("the webhook has no address")
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(c.CABundle) > 0 {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(c.CABundle) {
			return nil, "", errors.New("the webhook's caBundle has no certificate")
		}
	}
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: trust, Proxy: http.ProxyFromEnvironment}}, *c.URL, nil
}

// call sends and receives JSON.
func call(ctx context.Context, client *http.Client, method, address string, body, into any) error {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		var status metav1.Status
		if json.Unmarshal(data, &status) == nil && status.Message != "" {
			return errors.New(status.Message)
		}
		return fmt.Errorf("%s %s: %s", method, req.URL.Redacted(), resp.Status)
	}
	return json.Unmarshal(data, into)
}
