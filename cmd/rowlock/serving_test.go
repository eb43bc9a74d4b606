package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/server"
)

// TestServingFlags looks at which values are refused, and in whose words.
func TestServingFlags(t *testing.T) {
	for flag, want := range map[string]string{
		"--goaway-chance=0.03":       "--goaway-chance can not be less than 0 or greater than 0.02",
		"--goaway-chance=-1":         "--goaway-chance can not be less than 0 or greater than 0.02",
		"--livez-grace-period=-1s":   "--livez-grace-period can not be a negative value",
		"--min-request-timeout=-1":   "--min-request-timeout can not be negative value",
		"--max-requests-inflight=-1": "--max-requests-inflight can not be negative value",
		"--max-requests-inflight=0 --max-mutating-requests-inflight=0":       "invalid configuration: MaxRequestsInFlight=0 and MaxMutatingRequestsInFlight=0; they must add up to something positive",
		"--http2-max-streams-per-connection=9999":                            "at most 8191",
		"--cors-allowed-origins=example.com":                                 "does not pin to start/end of host",
		"--cors-allowed-origins=(":                                           "invalid regular expression",
		"--strict-transport-security-directives=max-age=1,forever":           "--strict-transport-security-directives invalid",
		"--tls-cert-file=x":                                                  "go together",
		"--goaway-chance=0.02":                                               "",
		"--strict-transport-security-directives=max-age=1,includeSubDomains": "",
		`--cors-allowed-origins=^https://(www\.)?example\.com$`:              "",
	} {
		o := &servingOptions{}
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		o.addTo(f)
		o.addLimits(f)
		if err := f.Parse(strings.Fields(flag)); err != nil {
			t.Fatalf("%s: %v", flag, err)
		}
		err := o.validate()
		if err == nil {
			err = o.addServing(&server.Config{})
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flag, err, want)
		}
	}
}

// TestInstallersCommandLine parses what kubeadm gives a kube-apiserver. Files are
// not opened yet.
func TestInstallersCommandLine(t *testing.T) {
	cmd := serveCommand()
	args := strings.Fields(`--advertise-address=192.0.2.1 --allow-privileged=true --authorization-mode=Node,RBAC --client-ca-file=/etc/kubernetes/pki/ca.crt
		--enable-admission-plugins=NodeRestriction --enable-bootstrap-token-auth=true --etcd-cafile=/etc/kubernetes/pki/etcd/ca.crt
		--etcd-certfile=/etc/kubernetes/pki/apiserver-etcd-client.crt --etcd-keyfile=/etc/kubernetes/pki/apiserver-etcd-client.key --etcd-servers=https://127.0.0.1:2379
		--kubelet-client-certificate=/etc/kubernetes/pki/apiserver-kubelet-client.crt --kubelet-client-key=/etc/kubernetes/pki/apiserver-kubelet-client.key
		--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname --proxy-client-cert-file=/etc/kubernetes/pki/front-proxy-client.crt
		--proxy-client-key-file=/etc/kubernetes/pki/front-proxy-client.key --requestheader-allowed-names=front-proxy-client
		--requestheader-client-ca-file=/etc/kubernetes/pki/front-proxy-ca.crt --requestheader-extra-headers-prefix=X-Remote-Extra-
		--requestheader-group-headers=X-Remote-Group --requestheader-username-headers=X-Remote-User --secure-port=6443
		--service-account-issuer=https://kubernetes.default.svc.cluster.local --service-account-key-file=/etc/kubernetes/pki/sa.pub
		--service-account-signing-key-file=/etc/kubernetes/pki/sa.key --service-cluster-ip-range=10.96.0.0/12
		--tls-cert-file=/etc/kubernetes/pki/apiserver.crt --tls-private-key-file=/etc/kubernetes/pki/apiserver.key --watch-cache --logging-format=json`)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	if got, err := cmd.Flags().GetString("log-format"); err != nil || got != "json" {
		t.Errorf("--logging-format is not --log-format: %q, %v", got, err)
	}
	var log bytes.Buffer
	reportIgnored(cmd.Flags(), slog.New(slog.NewTextHandler(&log, nil)))
	for _, name := range []string{"etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-servers", "watch-cache"} {
		if !strings.Contains(log.String(), "flag=--"+name+" ") {
			t.Errorf("nobody is told that --%s has no effect", name)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 5 {
		t.Errorf("%d lines:\n%s", n, &log)
	}
}

func TestNamedCertificates(t *testing.T) {
	n := &namedCertificate{names: []string{"api.example.com", "*.internal"}}
	for name, want := range map[string]bool{"api.example.com": true, "API.example.com": true, "a.internal": true, "a.b.internal": false, "internal": false, "": false} {
		if n.serves(name) != want {
			t.Errorf("%q: want %t", name, want)
		}
	}
	for _, bad := range []string{"cert", "a,b,c", "a,b:", "none,none"} {
		o := &servingOptions{named: []string{bad}}
		if list, err := o.namedCertificates(slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%q: %v", bad, list)
		}
	}
	if _, err := cipherSuites([]string{"TLS_NO"}); err == nil {
		t.Error("a cipher suite that nobody knows was taken")
	}
	if ids, err := cipherSuites([]string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"}); err != nil || len(ids) != 2 {
		t.Error(ids, err)
	}
}

func TestAdmissionFlags(t *testing.T) {
	o := &admissionOptions{only: []string{"NamespaceLifecycle"}}
	a, err := o.build()
	if err != nil || len(a.Enable) != 1 || len(a.Disable) < 20 {
		t.Errorf("%+v %v", a, err)
	}
	for _, bad := range []admissionOptions{
		{only: []string{"NamespaceLifecycle"}, enable: []string{"LimitRanger"}}, {only: []string{"No"}}, {enable: []string{"No"}}, {config: "nowhere"},
	} {
		if _, err := bad.build(); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
