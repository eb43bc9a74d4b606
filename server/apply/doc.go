// Package apply applies patches to objects: JSON Patches, merge patches and strategic merge
// patches. Server-side applies, and who owns which field, are in package ownership below.
//
//	writes                           the caller
//	  |-> ownership.FieldManager     server-side apply, and managed fields after each write
//	  |     |-> fieldset             ownership, the planned way: compares Go values
//	  |     `-> managedfields        ... the standard way, and all applies: the library
//	  `-> Patch.Change
//	        |-> changeDirectly       plain merge patches, strategic or not: values are set in a
//	        |                        copy of the object as the text of the patch is read
//	        |-> changeTree           any other strategic merge patch: the whole object becomes
//	        |     `-> strategic      a tree
//	        `-> changeDocument       JSON Patches, and any other merge patch: the JSON of the
//	              `-> jsonpatch      object
//
// The trees and documents do all that patches can say and make the texts of errors; changeDirectly
// handles the frequent cases, several times as fast, and leaves everything else to them. Tests over all kinds,
// and the fuzzer, hold it to them, and strategic to the library (strategicpatch of apimachinery).
//
// Nothing here reads or writes the store, defaults, admits or validates, and there are no
// goroutines. Errors are StatusErrors where the client is to blame. What a patch may cost
// is counted (package budget); docs/limits.md says how much that is.
package apply
