package release

// Change is something that a server answers otherwise from one release on, besides kinds, fields, values and gates.
type Change int

// The changes.
const (
	ImagesInRestrictedPods Change = iota // the restricted pod security standard allows volumes with images
	ValuesInJSON                         // errors show values as JSON, no longer in the syntax of Go
	ShortRequired                        // details of Required and Invalid do not repeat the name of the field
	Singulars                            // limits of one are in the singular
	EscapedFields                        // expressions may quote the names of fields
	ExamplesPublished                    // OpenAPI documents have the examples and external documents of custom resources
	OptionalKeys                         // items of a list that is applied may lack some of the fields that tell them apart
	NumberRanges                         // numbers of custom resources must be within what their format has
	LabelKeys                            // a name that labels have is called a label key
	UnderscoresShown                     // errors show that search domains may have underscores
	LabelsInBytes                        // the longest label is so many bytes, no longer characters
	BadRequests                          // requests that cannot be read are answered with 400, no longer with 500
)

// changes says from which release on.
var changes = map[Change]Version{
	ImagesInRestrictedPods: V133,
	ValuesInJSON:           V134,
	ShortRequired:          V134,
	Singulars:              V134,
	LabelsInBytes:          V135,
	LabelKeys:              V135,
	EscapedFields:          V133,
	UnderscoresShown:       V134,
	NumberRanges:           V136,
	BadRequests:            V133,
	OptionalKeys:           V134,
	ExamplesPublished:      V136,
}

// Has says whether a release has a change.
func (v Version) Has(c Change) bool { return v >= changes[c] }
