package podspec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
)

// defaults are the rules where all gates are as they are by default.
var defaults = podspec.For(gates.New(release.Default).Enabled)

// richPod uses most of what pods in the field use.
const richPod = `{
 "metadata": {"name": "shop-7d9c", "labels": {"app": "shop"}, "annotations": {"prometheus.io/scrape": "true"}},
 "spec": {
  "serviceAccountName": "shop", "nodeSelector": {"kubernetes.io/os": "linux"}, "terminationGracePeriodSeconds": 45,
  "securityContext": {"fsGroup": 2000, "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
  "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
  "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm":
   {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "shop"}}}}]}},
  "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": "shop"}}}],
  "volumes": [{"name": "conf", "configMap": {"name": "shop", "items": [{"key": "a", "path": "b/c"}]}}, {"name": "tmp", "emptyDir": {}},
   {"name": "api", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}, {"downwardAPI": {"items": [{"path": "ns", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}]}}],
  "initContainers": [{"name": "migrate", "image": "registry.example/shop:4.2", "command": ["migrate"]}],
  "containers": [
   {"name": "web", "image": "registry.example/shop:4.2",
    "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
    "env": [{"name": "MODE", "value": "prod"}, {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
     {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "shop", "key": "key"}}}],
    "envFrom": [{"configMapRef": {"name": "shop-env"}}],
    "resources": {"requests": {"cpu": "250m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}},
    "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}}, "livenessProbe": {"httpGet": {"path": "/", "port": 8080}},
    "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    "volumeMounts": [{"name": "conf", "mountPath": "/etc/shop"}, {"name": "tmp", "mountPath": "/tmp"}]},
   {"name": "log", "image": "registry.example/log", "volumeMounts": [{"name": "tmp", "mountPath": "/tmp", "readOnly": true}]}]}}`

func decodePod(t testing.TB, text string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(text), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// podWith returns a pod with one container and the given members of its spec.
func podWith(members string) string {
	if members != "" {
		members = ", " + members
	}
	return `{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i:1"}]` + members + `}}`
}

// containerWith returns a pod whose container has the given members.
func containerWith(members string) string {
	return `{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i:1", ` + members + `}]}}`
}

func validate(t testing.TB, text string) []string {
	t.Helper()
	pod := decodePod(t, text)
	defaults.DefaultPodSpec(&pod.Spec)
	defaults.DropDisabled(&pod.Spec, nil)
	return texts(podspec.ValidatePod(pod, defaults.PodOptions(pod, nil)))
}

func texts(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, status.Text(release.Default, e))
	}
	return out
}

func TestValidPodsHaveNoErrors(t *testing.T) {
	for name, pod := range map[string]string{
		"rich":    richPod,
		"minimal": podWith(""),
		"sidecar": podWith(`"initContainers": [{"name": "s", "image": "i", "restartPolicy": "Always", "livenessProbe": {"exec": {"command": ["x"]}}}]`),
		"windows": podWith(`"os": {"name": "windows"}, "hostNetwork": true, "securityContext": {"windowsOptions": {"hostProcess": true, "runAsUserName": "NT AUTHORITY\\SYSTEM"}}`),
		"dns":     podWith(`"dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.0.0.1"], "searches": ["a.b.", "c"]}`),
		"huge":    containerWith(`"resources": {"limits": {"hugepages-2Mi": "4Mi", "memory": "1Gi"}, "requests": {"hugepages-2Mi": "4Mi"}}`),
		"device":  `{"metadata": {"name": "p"}, "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}], "containers": [{"name": "c", "image": "i", "volumeDevices": [{"name": "v", "devicePath": "/dev/x"}]}]}}`,
	} {
		if got := validate(t, pod); got != nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestValidate(t *testing.T) {
	const label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
	tests := []struct {
		name, pod string
		want      []string
	}{
		{"no containers", `{"spec": {}}`, []string{"spec.containers: Required value"}},
		{"container basics", `{"spec": {"containers": [{"terminationMessagePolicy": "No", "imagePullPolicy": "No"}, {"name": "A", "image": " i"}]}}`, []string{
			"spec.containers[0].name: Required value",
			"spec.containers[0].image: Required value",
			`spec.containers[0].terminationMessagePolicy: Unsupported value: "No": supported values: "File", "FallbackToLogsOnError"`,
			`spec.containers[0].imagePullPolicy: Unsupported value: "No": supported values: "Always", "IfNotPresent", "Never"`,
			`spec.containers[1].name: Invalid value: "A": ` + label,
			`spec.containers[1].image: Invalid value: " i": must not have leading or trailing whitespace`,
		}},
		{"two of one name", `{"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i", "restartPolicy": "Always"}]}}`, []string{
			`spec.containers[1].name: Duplicate value: "c"`,
			"spec.containers[1].restartPolicy: Forbidden: may not be set for non-init containers",
		}},
		{"init containers", podWith(`"initContainers": [{"name": "c", "image": "i", "lifecycle": {}, "startupProbe": {"exec": {}}}, {"name": "d", "image": "i", "restartPolicy": "Never"}]`), []string{
			`spec.initContainers[0].name: Duplicate value: "c"`,
			"spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always",
			"spec.initContainers[0].startupProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
			`spec.initContainers[1].restartPolicy: Unsupported value: "Never": supported values: "Always"`,
		}},
		{"ports", containerWith(`"ports": [{"name": "web", "containerPort": 0}, {"name": "web", "containerPort": 70000, "hostPort": -1, "protocol": "X"}, {"name": "no_letters"}]`), []string{
			"spec.containers[0].ports[0].containerPort: Required value",
			`spec.containers[0].ports[1].name: Duplicate value: "web"`,
			"spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
			"spec.containers[0].ports[1].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive",
			`spec.containers[0].ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"`,
			`spec.containers[0].ports[2].name: Invalid value: "no_letters": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)`,
			"spec.containers[0].ports[2].containerPort: Required value",
		}},
		{"host network", podWith(`"hostNetwork": true, "initContainers": [{"name": "i", "image": "i", "ports": [{"containerPort": 1, "hostPort": 2}]}]`), nil},
		{"host network ports", `{"spec": {"hostNetwork": true, "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 81}]}]}}`, []string{
			"spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true",
		}},
		{"environment", containerWith(`"env": [{"name": "a=b"}, {"name": "b", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a b']"}}},
			{"name": "c", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "10m"}}}, {"name": "d", "valueFrom": {"fieldRef": {"fieldPath": "spec.host", "apiVersion": "v2"}}}],
			"envFrom": [{}, {"configMapRef": {}, "secretRef": {"name": "s-"}}]`), []string{
			`spec.containers[0].env[0].name: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters other than '='`,
			`spec.containers[0].env[1].valueFrom.fieldRef: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
			"spec.containers[0].env[1].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
			`spec.containers[0].env[2].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor's values 1m and 1 are supported with the cpu resource`,
			`spec.containers[0].env[3].valueFrom.fieldRef.fieldPath: Invalid value: "spec.host": error converting fieldPath: unsupported pod version: v2`,
			"spec.containers[0].envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
			"spec.containers[0].envFrom[1].configMapRef.name: Required value",
			"spec.containers[0].envFrom: Invalid value: \"\": may not have more than one field specified at a time",
		}},
		{"mounts", `{"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [{"name": "c", "image": "i",
			"volumeMounts": [{"name": "v", "mountPath": "/a", "subPath": "../b", "mountPropagation": "Bidirectional"}, {"name": "w", "mountPath": "/a", "recursiveReadOnly": "Enabled"}],
			"volumeDevices": [{"name": "v", "devicePath": "/dev/../x"}]}]}}`, []string{
			`spec.containers[0].volumeMounts[0].name: Invalid value: "v": must not already exist in volumeDevices`,
			`spec.containers[0].volumeMounts.subPath: Invalid value: "../b": must not contain '..'`,
			"spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers",
			`spec.containers[0].volumeMounts[1].name: Not found: "w"`,
			`spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique`,
			"spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true",
			`spec.containers[0].volumeDevices[0].name: Invalid value: "v": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode`,
			`spec.containers[0].volumeDevices[0].devicePath: Invalid value: "/dev/../x": can not contain backsteps ('..')`,
			`spec.containers[0].volumeDevices[0].name: Invalid value: "v": must not already exist in volumeMounts`,
		}},
		{"volumes", podWith(`"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/x"}}, {"name": "b", "iscsi": {"iqn": "iqn.bad", "lun": 300}},
			{"name": "c", "flocker": {}}, {"name": "d", "csi": {"driver": "D.example", "nodePublishSecretRef": {}}}, {"name": "e", "downwardAPI": {"items": [{"path": "/p"}]}},
			{"name": "e", "azureDisk": {"diskName": "n", "diskURI": "u", "kind": "Managed"}}]`), []string{
			"spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
			"spec.volumes[1].iscsi.targetPortal: Required value",
			`spec.volumes[1].iscsi.iqn: Invalid value: "iqn.bad": must be valid format`,
			"spec.volumes[1].iscsi.lun: Invalid value: 300: must be between 0 and 255, inclusive",
			"spec.volumes[2].flocker: Required value: one of datasetName and datasetUUID is required",
			"spec.volumes[3].csi.nodePublishSecretRef.name: Required value",
			`spec.volumes[4].downwardAPI.path: Invalid value: "/p": must be a relative path`,
			"spec.volumes[4].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required",
			`spec.volumes[5].azureDisk.diskURI: Unsupported value: "u": supported values: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"`,
		}},
		{"ephemeral volumes", podWith(`"volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"metadata": {"name": "x"}, "spec": {"accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]}}}},
			{"name": "b", "persistentVolumeClaim": {"claimName": "p-a"}}]`), []string{
			"spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set",
			"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
			"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value",
			`spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "p-a": must not reference a PVC that gets created for an ephemeral volume`,
		}},
		{"probes", containerWith(`"livenessProbe": {"exec": {}, "tcpSocket": {"port": 1}, "successThreshold": 2}, "readinessProbe": {"grpc": {"port": 0}, "terminationGracePeriodSeconds": 0},
			"startupProbe": {"httpGet": {"port": "UP", "scheme": "x", "httpHeaders": [{"name": "a b"}]}}, "lifecycle": {"preStop": {"sleep": {"seconds": 31}}, "postStart": {}}`), []string{
			"spec.containers[0].lifecycle.postStart: Required value: must specify a handler type",
			"spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be greater than 0 and less than terminationGracePeriodSeconds (30). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep.",
			"spec.containers[0].livenessProbe.exec.command: Required value",
			"spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
			"spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
			"spec.containers[0].readinessProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive",
			"spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
			"spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 0: must not be set for readinessProbes",
			`spec.containers[0].startupProbe.httpGet.port: Invalid value: "UP": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)`,
			`spec.containers[0].startupProbe.httpGet.port: Invalid value: "UP": must contain at least one letter (a-z)`,
			`spec.containers[0].startupProbe.httpGet.scheme: Unsupported value: "x": supported values: "HTTP", "HTTPS"`,
			`spec.containers[0].startupProbe.httpGet.httpHeaders: Invalid value: "a b": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')`,
		}},
		{"resources", containerWith(`"resources": {"limits": {"example.com/gpu": "1", "memory": "-1"}, "requests": {"example.com/gpu": "500m", "storage": "1", "hugepages-2Mi": "3Mi", "other.io/x": "1"}}`), []string{
			`spec.containers[0].resources.limits[memory]: Invalid value: "-1": must be greater than or equal to 0`,
			`spec.containers[0].resources.requests[example.com/gpu]: Invalid value: resource.Quantity{i:resource.int64Amount{value:500, scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"500m", Format:"DecimalSI"}: must be an integer`,
			`spec.containers[0].resources.requests: Invalid value: "500m": must be equal to example.com/gpu limit of 1`,
			"spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
			`spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi`,
			"spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
			"spec.containers[0].resources.requests[storage]: Invalid value: storage: must be a standard resource for containers",
		}},
		{"security", podWith(`"hostPID": true, "shareProcessNamespace": true, "hostNetwork": true, "securityContext": {"fsGroupChangePolicy": "x", "runAsUser": -1,
			"sysctls": [{"name": "net/ipv4/tcp_syncookies"}, {"name": "A"}], "seccompProfile": {"type": "Localhost", "localhostProfile": "/x"}, "windowsOptions": {"runAsUserName": "a\\b\\c"}}`), []string{
			"spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
			"spec.securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled",
			`spec.securityContext.sysctls[0].name: Invalid value: "net/ipv4/tcp_syncookies": may not be specified when 'hostNetwork' is true`,
			`spec.securityContext.sysctls[1].name: Invalid value: "A": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`,
			`spec.securityContext.fsGroupChangePolicy: Unsupported value: "x": supported values: "Always", "OnRootMismatch"`,
			`spec.securityContext.seccompProfile.localhostProfile: Invalid value: "/x": must be a relative path`,
			`spec.securityContext.windowsOptions.runAsUserName: Invalid value: "a\\b\\c": runAsUserName cannot contain more than one backslash`,
		}},
		{"affinity", podWith(`"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["bad value"]}, {"key": "a", "operator": "In"}],
			"matchFields": [{"key": "spec.x", "operator": "Exists"}]}]}}, "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "k", "matchLabelKeys": ["x"], "namespaces": ["N"]}]}}`), []string{
			"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].operator: Invalid value: "Exists": not a valid selector operator`,
			`spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key: Invalid value: "spec.x": not a valid field selector key`,
			`spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespace: Invalid value: "N": ` + label,
			"spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
		}},
		{"small fields", podWith(`"activeDeadlineSeconds": 0, "hostname": "A", "priorityClassName": "B", "preemptionPolicy": "C", "overhead": {"x": "1"}, "os": {"name": "beos"},
			"hostAliases": [{"ip": "1.2.3"}], "schedulingGates": [{"name": "g"}, {"name": "g"}], "readinessGates": [{"conditionType": "a/b/c"}]`), []string{
			"spec.readinessGates[0].conditionType: Invalid value: \"a/b/c\": a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
			`spec.schedulingGates[1]: Duplicate value: "g"`,
			"spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
			`spec.hostname: Invalid value: "A": ` + label,
			`spec.hostAliases[0].ip: Invalid value: "1.2.3": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
			`spec.priorityClassName: Invalid value: "B": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
			`spec.preemptionPolicy: Unsupported value: "C": supported values: "PreemptLowerPriority", "Never"`,
			"spec.overhead.limits[x]: Invalid value: x: must be a standard resource type or fully qualified",
			"spec.overhead.limits[x]: Invalid value: x: must be a standard resource for containers",
			`spec.os: Unsupported value: "beos": supported values: "linux", "windows"`,
		}},
		{"annotations", `{"metadata": {"annotations": {"kubernetes.io/config.mirror": "m", "controller.kubernetes.io/pod-deletion-cost": "+1", "seccomp.security.alpha.kubernetes.io/pod": "x",
			"container.apparmor.security.beta.kubernetes.io/d": "y"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}`, []string{
			`metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "m": must set spec.nodeName if mirror pod annotation is set`,
			`metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+1": must be a 32bit integer`,
			`metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "x": must be a valid seccomp profile`,
			`metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: "d": container not found`,
			`metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: "y": invalid AppArmor profile name: "y"`,
		}},
		{"token of no account", podWith(`"volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "x", "expirationSeconds": 1}}]}}]`), []string{
			"spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes",
			"spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, validate(t, tt.pod)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValidateTemplate(t *testing.T) {
	tmpl := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal([]byte(`{"metadata": {"labels": {"b": "x y", "a": "ok"}, "annotations": {"no/no/no": ""}},
		"spec": {"hostNetwork": true, "containers": [{"name": "c", "image": " padded ", "ports": [{"containerPort": 1}]}], "ephemeralContainers": [{"name": "e", "image": "i"}]}}`), tmpl); err != nil {
		t.Fatal(err)
	}
	defaults.DefaultTemplate(tmpl)
	p := field.NewPath("spec", "template")
	got := texts(podspec.ValidateTemplate(tmpl, p, defaults.TemplateOptions(tmpl, nil)))
	want := []string{`spec.template.labels: Invalid value: "x y"`, `spec.template.annotations: Invalid value: "no/no/no"`, "spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template"}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("error %d: got %q, want it to begin with %q", i, got[i], want[i])
		}
	}
}

// A new object may violate the rules that the old one violates.
func TestOptionsFollowOldObject(t *testing.T) {
	for name, text := range map[string]string{
		"huge pages":    containerWith(`"resources": {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}, "requests": {"hugepages-2Mi": "3Mi"}}`),
		"spread":        podWith(`"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b c"}}}]`),
		"affinity":      podWith(`"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "k", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}}]}}`),
		"sysctl":        podWith(`"hostIPC": true, "securityContext": {"sysctls": [{"name": "kernel.shmmax"}]}`),
		"token path":    podWith(`"serviceAccountName": "s", "volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "/x"}}]}}]`),
		"zero sleep":    containerWith(`"lifecycle": {"preStop": {"sleep": {"seconds": 0}}}`),
		"deletion cost": `{"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "007"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}`,
	} {
		pod := decodePod(t, text)
		defaults.DefaultPodSpec(&pod.Spec)
		if errs := podspec.ValidatePod(pod, defaults.PodOptions(pod, nil)); len(errs) == 0 {
			t.Errorf("%s: a new pod is valid", name)
		}
		if errs := podspec.ValidatePod(pod, defaults.PodOptions(pod, pod.DeepCopy())); len(errs) != 0 {
			t.Errorf("%s: an old pod is not: %v", name, errs)
		}
	}
}
