// Package apply applies patches to objects: JSON Patches, merge patches and strategic merge
// patches. Server-side applies, and who owns which field, are in package ownership below.
//
//	writes, webhooks                 who calls
//	  |-> ownership.FieldManager     server-side apply, and managed fields after each write
//	  |     |-> fieldset             ownership, the planned way: compares Go values
//	  |     `-> managedfields        ... the standard way, and all applies: the library
//	  `-> Patcher.Change
//	        |-> changeInPlace        merge patches, strategic or not, of plain fields
//	        |     |-> changeDirectly     the frequent ones: values are set as the patch is read
//	        |     `-> changeByTree       only the structs that the patch names become trees and
//	        |                            are merged
//	        |-> Patch.changeTree     strategic merge patches of anything else: the whole object
//	        |     |-> strategic.Own        our merge
//	        |     `-> strategic.Standard   the library's, weighed before
//	        `-> Patch.changeDocument JSON Patches, and merge patches of anything else: the
//	              `-> jsonpatch      object's JSON
//
// Patching in place and our strategic merge are quick ways to what the plain ones do as
// well: behind StrategicMerger, switched off by Config.StandardOnly, and left by themselves
// for objects of a type for which they panic. Config.Count is told which way was taken.
//
// Nothing here reads or writes the store, defaults, admits or validates, and there are no
// goroutines. Errors are StatusErrors where the client is to blame. What a patch may cost
// is counted (package budget) in each way; docs/limits.md says how much that is.
package apply
