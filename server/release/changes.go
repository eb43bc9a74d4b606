package release

import (
	"maps"
	"slices"
)

// Change is a change of behaviour between releases, apart from kinds, fields, values and gates.
type Change int

// The changes.
const (
	ImagesInRestrictedPods Change = iota // the restricted pod security standard allows volumes with images
	ValuesInJSON                         // errors show values as JSON, no longer in the syntax of Go
	ShortRequired                        // details of Required and Invalid do not repeat the name of the field
	Singulars                            // limits of one are in the singular
	EscapedFields                        // expressions may quote the names of fields
	ExamplesPublished                    // OpenAPI documents have the examples and external documents of custom resources
	OptionalKeys                         // items of an applied list may lack some of the key fields
	NumberRanges                         // numbers of custom resources must be within the range of their format
	FormatsByType                        // a format in the schema of a custom resource applies only to its types, and formats of numbers apply
	LabelKeys                            // a name that labels have is called a label key
	UnderscoresShown                     // errors show that search domains may have underscores
	LabelsInBytes                        // the length limit of a label counts bytes, no longer characters
	BadRequests                          // a request that the server cannot read gets 400, and one for an absent object 404, no longer 500
	ScalesOfParents                      // errors about the scale of an absent object name the object
	AbsentFirst                          // an update of an absent object is not compared with the UID that it names
	ForbiddenCreates                     // creates of a resource whose definition ends are forbidden, no longer unsupported
	BudgetReasons                        // a refused eviction has the reason of its budget
	NoBlueprints                         // the bookmark that ends the initial events of a watch does not show the empty list
	TokenUIDs                            // a TokenRequest names the UID of its account
	MirrorsWithoutAPI                    // mirror pods may use nothing of the API, for whatever purpose
	NodesReadAccounts                    // the node authorizer allows reads of service accounts
	JoseRenamed                          // the library that verifies tokens has another name
	DeletionsNeverPast                   // a shorter grace period does not move the deletionTimestamp into the past
	StatusOwnsNoMetadata                 // a write of the status of a custom resource owns none of its metadata
	MetricsByGroup                       // metrics have the group of a resource in a label of its own
	PagesOfPrograms                      // /statusz and /flagz have a form for programs
	AuditAllGroups                       // an audit policy may name all groups with "*"
	EmptiedStay                          // an apply that leaves no field of a struct leaves it empty, and not null
	EmbeddedNamed                        // errors about JSON of a wrong type name the embedded structs of Go
	EmptyLeftOut                         // empty fields that are not optional, such as the creationTimestamp of a template, are left out, no longer null
	PodRules133                          // Pods have generations, may be resized, and have other rules in addition to those of gates
	Tables133                            // the Table form of eight kinds, such as ResourceQuotas, has other columns or cells
	MarksOfDocuments                     // an OpenAPI document of a version names only kinds of this version and of the core
	SelectableIfAny                      // the OpenAPI definitions of custom kinds without selectable fields do not mention them
	KindRules133                         // kinds other than Pods have other rules, in addition to those of gates
	CustomResources133                   // writes of the status keep previously invalid values, and definitions warn of unknown formats
	SharedDevices                        // device requests have alternatives, taints, shared counters and consumed capacity
	NamedProxies                         // authenticating proxies whose authority is also that of clients must be named
	NewerConfigurations                  // configuration files have later versions and fields
	SlicesOfServers                      // the state of an aggregated server without endpoints mentions EndpointSlices, no longer Endpoints
)

// changes maps each change to its first release.
var changes = map[Change]Version{
	ImagesInRestrictedPods: V133,
	ValuesInJSON:           V133,
	ShortRequired:          V133,
	Singulars:              V133,
	LabelsInBytes:          V133,
	LabelKeys:              V133,
	EscapedFields:          V133,
	UnderscoresShown:       V133,
	NumberRanges:           V133,
	FormatsByType:          V133,
	BadRequests:            V133,
	ScalesOfParents:        V133,
	AbsentFirst:            V133,
	ForbiddenCreates:       V133,
	BudgetReasons:          V133,
	NoBlueprints:           V133,
	TokenUIDs:              V133,
	MirrorsWithoutAPI:      V133,
	NodesReadAccounts:      V133,
	JoseRenamed:            V133,
	DeletionsNeverPast:     V133,
	StatusOwnsNoMetadata:   V133,
	MetricsByGroup:         V133,
	PagesOfPrograms:        V133,
	AuditAllGroups:         V133,
	EmptiedStay:            V133,
	EmbeddedNamed:          V133,
	EmptyLeftOut:           V133,
	PodRules133:            V133,
	Tables133:              V133,
	MarksOfDocuments:       V133,
	SelectableIfAny:        V133,
	KindRules133:           V133,
	CustomResources133:     V133,
	SharedDevices:          V133,
	NamedProxies:           V133,
	OptionalKeys:           V133,
	ExamplesPublished:      V133,
	NewerConfigurations:    V133,
	SlicesOfServers:        V133,
}

// Changes returns all changes.
func Changes() []Change {
	return slices.Sorted(maps.Keys(changes))
}

// Has reports whether a release has a change.
func (v Version) Has(c Change) bool { return v >= changes[c] }
