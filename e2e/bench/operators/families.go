package operators

// family is a kind of operator.
type family struct {
	name     string
	kinds    []string
	versions []string // oldest first
	cluster  bool
	spec     string // fields, as shapes has them
	status   string
	columns  []string // JSON paths
	scale    bool     // spec.replicas can be scaled
	rules    []string // of the spec
}

var families = []family{
	{name: "certificates", kinds: []string{"Certificate", "Request", "Order", "Challenge"}, versions: []string{"v1"},
		spec:   "commonName:string dnsNames:[]name ipAddresses:[]string uris:[]string emailAddresses:[]string duration:duration renewBefore:duration issuerRef:reference! secretName:name! secretTemplate:template usages:[]usage privateKey:privateKey keystores:keystores revisionHistoryLimit:int isCA:bool subject:subject nameConstraints:nameConstraints additionalOutputFormats:[]output@type",
		status: "conditions notAfter:time notBefore:time renewalTime:time revision:int nextPrivateKeySecretName:string failedIssuanceAttempts:int", columns: []string{".spec.secretName", ".status.notAfter"},
		rules: []string{"!has(self.renewBefore) || has(self.duration)", "!has(self.dnsNames) || self.dnsNames.all(n, n.size() <= 253)"}},
	{name: "issuers", kinds: []string{"Issuer", "Authority"}, versions: []string{"v1"}, cluster: true,
		spec:   "acme:acme ca:caIssuer selfSigned:selfSigned vault:vault venafi:venafi",
		status: "conditions acmeURI:string lastRegisteredEmail:string lastPrivateKeyHash:string", columns: []string{".status.acmeURI"}},
	{name: "monitoring", kinds: []string{"Server", "Alerter", "Ruler", "Agent"}, versions: []string{"v1alpha1", "v1"}, scale: true,
		spec:   "podFields replicas:int=1 shards:int image:string version:string retention:duration retentionSize:quantity scrapeInterval:duration evaluationInterval:duration externalLabels:labels externalUrl:string remoteWrite:[]remoteWrite remoteRead:[]remoteRead serviceMonitorSelector:selector ruleSelector:selector podMonitorSelector:selector storage:storage alerting:alerting thanos:sidecar web:webConfig query:query tsdb:tsdb resources:resources secrets:[]string configMaps:[]string",
		status: "conditions replicas:int! updatedReplicas:int! availableReplicas:int! unavailableReplicas:int! paused:bool selector:string shardStatuses:[]shard@shardID", columns: []string{".spec.version", ".spec.replicas", ".status.availableReplicas"},
		rules: []string{"!has(self.shards) || self.shards >= 0"}},
	{name: "scraping", kinds: []string{"ServiceMonitor", "PodMonitor", "Probe"}, versions: []string{"v1"},
		spec:   "selector:selector! endpoints:[]endpoint namespaceSelector:namespaces jobLabel:string targetLabels:[]string podTargetLabels:[]string sampleLimit:int targetLimit:int labelLimit:int attachMetadata:attach bodySizeLimit:quantity scrapeProtocols:[]protocol",
		status: "conditions bindings:[]binding"},
	{name: "rules", kinds: []string{"AlertRule", "RecordingRule"}, versions: []string{"v1"},
		spec: "groups:[]ruleGroup@name", status: "conditions"},
	{name: "mesh", kinds: []string{"VirtualService", "Rule", "Sidecar", "Entry"}, versions: []string{"v1alpha3", "v1beta1", "v1"},
		spec:   "hosts:[]string gateways:[]string exportTo:[]string http:[]meshRoute tls:[]tlsRoute tcp:[]tcpRoute trafficPolicy:trafficPolicy subsets:[]subset@name workloadSelector:selector",
		status: "conditions observedGeneration:int validationMessages:[]message", columns: []string{".spec.gateways", ".spec.hosts"}},
	{name: "authorization", kinds: []string{"Policy", "PeerAuth", "RequestAuth"}, versions: []string{"v1beta1", "v1"},
		spec: "selector:selector action:action=ALLOW rules:[]authRule targetRefs:[]target jwtRules:[]jwtRule mtls:mtls portLevelMtls:{}mtls", status: "conditions observedGeneration:int",
		rules: []string{"!(has(self.selector) && has(self.targetRefs)) || size(self.targetRefs) == 0"}},
	{name: "gateways", kinds: []string{"Gateway", "Route", "Grant", "TLSRoute"}, versions: []string{"v1beta1", "v1"},
		spec:   "gatewayClassName:name! listeners:[]listener@name addresses:[]address parentRefs:[]parent hostnames:[]name routes:[]gatewayRoute infrastructure:template backendTLS:tls",
		status: "conditions addresses:[]address listeners:[]listenerStatus@name parents:[]parentStatus", columns: []string{".spec.gatewayClassName", ".status.addresses[*].value"},
		rules: []string{"!has(self.listeners) || self.listeners.all(l, l.port > 0)", "!has(self.listeners) || self.listeners.all(l, l.protocol == 'TCP' || !has(l.hostname) || l.hostname.size() > 0)"}},
	{name: "postgres", kinds: []string{"Cluster", "Pooler", "Database", "Publication"}, versions: []string{"v1beta1", "v1"}, scale: true,
		spec:   "replicas:int=1 imageName:string bootstrap:bootstrap postgresql:{}string parameters:labels affinity:affinity resources:resources storage:storage! walStorage:storage backup:backup externalClusters:[]external@name managed:managed monitoring:monitoring probes:probes topologySpreadConstraints:[]spread tablespaces:[]tablespace@name env:[]env envFrom:[]envFrom projectedVolumeTemplate:volume minSyncReplicas:int maxSyncReplicas:int switchoverDelay:int certificates:certificates",
		status: "conditions replicas:int readyInstances:int phase:string currentPrimary:string targetPrimary:string pvcCount:int poolerIntegrations:labels certificates:labels instanceNames:[]string", columns: []string{".status.readyInstances", ".status.currentPrimary"},
		rules: []string{"!has(self.minSyncReplicas) || !has(self.maxSyncReplicas) || self.minSyncReplicas <= self.maxSyncReplicas"}},
	{name: "backups", kinds: []string{"Backup", "Restore", "Schedule", "Location"}, versions: []string{"v1"},
		spec:   "schedule:string includedNamespaces:[]string excludedNamespaces:[]string includedResources:[]string labelSelector:selector orLabelSelectors:[]selector snapshotVolumes:bool ttl:duration storageLocation:name hooks:hooks orderedResources:labels resourcePolicy:reference uploader:uploader",
		status: "conditions phase:string startTimestamp:time completionTimestamp:time warnings:int errors:int progress:progress", columns: []string{".status.phase"}},
	{name: "gitops", kinds: []string{"Application", "Project", "ApplicationSet"}, versions: []string{"v1alpha1"},
		spec:   "project:name! source:source sources:[]source destination:destination! syncPolicy:syncPolicy ignoreDifferences:[]ignored info:[]pair revisionHistoryLimit:int generators:[]generator template:applicationTemplate",
		status: "conditions health:health sync:sync history:[]deployment operationState:operation resources:[]resourceStatus summary:summary", columns: []string{".status.sync.status", ".status.health.status"}},
	{name: "reconcilers", kinds: []string{"Kustomization", "Release", "Repository", "Bucket"}, versions: []string{"v1beta1", "v1beta2", "v1"},
		spec:   "interval:duration! retryInterval:duration timeout:duration sourceRef:reference! path:string prune:bool suspend:bool=false targetNamespace:name dependsOn:[]dependency healthChecks:[]target patches:[]patch images:[]image postBuild:postBuild decryption:decryption kubeConfig:kubeConfig serviceAccountName:name chart:chart values:any valuesFrom:[]valuesFrom install:remediation upgrade:remediation rollback:remediation test:remediation",
		status: "conditions observedGeneration:int lastAppliedRevision:string lastAttemptedRevision:string inventory:inventory history:[]snapshot", columns: []string{".status.conditions[?(@.type==\"Ready\")].status"}},
	{name: "workflows", kinds: []string{"Workflow", "CronWorkflow", "Template"}, versions: []string{"v1alpha1"},
		spec:   "podFields entrypoint:string arguments:arguments templates:[]workflowTemplate@name onExit:string parallelism:int activeDeadlineSeconds:int ttlStrategy:ttlStrategy podGC:podGC schedule:string volumeClaimTemplates:[]claim synchronization:synchronization metrics:metrics suspend:bool",
		status: "conditions phase:string startedAt:time finishedAt:time progress:string message:string nodes:any outputs:arguments resourcesDuration:{}int", columns: []string{".status.phase", ".status.message"}},
	{name: "pipelines", kinds: []string{"Task", "Pipeline", "TaskRun"}, versions: []string{"v1beta1", "v1"},
		spec:   "description:string params:[]param@name workspaces:[]workspace@name steps:[]container@name sidecars:[]container@name volumes:[]volume@name stepTemplate:container results:[]result@name taskRef:reference podTemplate:template timeout:duration retries:int",
		status: "conditions podName:string startTime:time completionTime:time taskResults:[]pair"},
	{name: "serving", kinds: []string{"Service", "Revision", "Configuration"}, versions: []string{"v1"},
		spec:   "template:podTemplate traffic:[]traffic containerConcurrency:int timeoutSeconds:int",
		status: "conditions url:string latestReadyRevisionName:string latestCreatedRevisionName:string observedGeneration:int traffic:[]traffic address:address", columns: []string{".status.url"}},
	{name: "kafka", kinds: []string{"Broker", "Topic", "User", "Connect"}, versions: []string{"v1beta1", "v1beta2"}, scale: true,
		spec:   "replicas:int=3 version:string config:any listeners:[]brokerListener@name storage:storage authorization:brokerAuth rack:rack template:podTemplate entityOperator:entityOperator logging:logging jvmOptions:jvm metricsConfig:valuesFrom partitions:int topicName:name",
		status: "conditions replicas:int observedGeneration:int listeners:[]listenerStatus@name clusterId:string", columns: []string{".spec.replicas"}},
	{name: "scalers", kinds: []string{"ScaledObject", "ScaledJob", "TriggerAuth"}, versions: []string{"v1alpha1"},
		spec:   "scaleTargetRef:target! pollingInterval:int cooldownPeriod:int minReplicaCount:int maxReplicaCount:int=10 fallback:fallback advanced:behavior triggers:[]trigger jobTemplate:podTemplate",
		status: "conditions scaleTargetKind:string lastActiveTime:time externalMetricNames:[]string health:{}string", columns: []string{".spec.minReplicaCount", ".spec.maxReplicaCount"},
		rules: []string{"!has(self.minReplicaCount) || !has(self.maxReplicaCount) || self.minReplicaCount <= self.maxReplicaCount"}},
	{name: "secrets", kinds: []string{"ExternalSecret", "Store", "PushSecret"}, versions: []string{"v1alpha1", "v1beta1", "v1"},
		spec:   "refreshInterval:duration secretStoreRef:reference target:secretTarget data:[]secretData dataFrom:[]secretFrom provider:provider retrySettings:retrySettings conditions:[]storeCondition",
		status: "conditions refreshTime:time syncedResourceVersion:string binding:reference", columns: []string{".spec.refreshInterval"}},
	{name: "cloud", kinds: []string{"Instance", "Bucket", "Network", "Role", "Queue", "Table"}, versions: []string{"v1beta1", "v1beta2"}, cluster: true,
		spec:   "deletionPolicy:deletion=Delete managementPolicies:[]string providerConfigRef:reference publishConnectionDetailsTo:reference writeConnectionSecretToRef:secretRef forProvider:cloudInstance! initProvider:cloudInstance",
		status: "conditions atProvider:cloudInstance observedGeneration:int", columns: []string{".status.conditions[?(@.type=='Ready')].status", ".metadata.creationTimestamp"},
		rules: []string{"self.deletionPolicy != 'Orphan' || has(self.forProvider)"}},
	{name: "machines", kinds: []string{"Machine", "Pool", "ControlPlane", "HealthCheck"}, versions: []string{"v1alpha4", "v1beta1"}, scale: true,
		spec:   "clusterName:name! replicas:int=1 version:string bootstrap:machineBootstrap infrastructureRef:target! providerID:string failureDomain:string nodeDrainTimeout:duration selector:selector strategy:strategy kubeadmConfig:kubeadm nodePool:nodePool template:template",
		status: "conditions replicas:int phase:string nodeRef:target addresses:[]address failureMessage:string bootstrapReady:bool", columns: []string{".spec.clusterName", ".status.phase", ".spec.version"}},
}
