// Package apply applies patches to objects: JSON Patches, merge patches and strategic merge patches.
// Server-side apply and field ownership are in package ownership below.
//
//	writes                           the caller
//	  |-> ownership.FieldManager     server-side apply, and managed fields after each write
//	  |     |-> fieldset             ownership, the fast path: compares Go values
//	  |     `-> managedfields        ... the fallback, and most applies: the library
//	  `-> Patch.Change
//	        |-> changeDirectly       plain merge patches, strategic or not: values are set in a
//	        |                        copy of the object as the text of the patch is read
//	        |-> mergeTree            plain merge patches of objects without Go type: the patched
//	        |                        tree shares what it does not change with the live one
//	        |-> changeTree           any other strategic merge patch: the whole object becomes
//	        |     `-> strategic      a tree
//	        `-> changeDocument       JSON Patches, and any other merge patch: the JSON of the
//	              `-> jsonpatch      object
//
// Trees and documents implement everything that patches can contain, and make the texts of errors;
// changeDirectly and mergeTree handle the frequent cases, several times as fast, and leave everything else to
// them. Tests over all kinds, and the fuzzer, compare the results, and those of strategic with the library
// (strategicpatch of apimachinery).
//
// Nothing here reads or writes the store, defaults, admits or validates, and there are no goroutines. Errors
// are StatusErrors if the client caused them. Package budget bounds the cost of a patch; see docs/limits.md.
package apply
