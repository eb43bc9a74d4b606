// Package apply computes what a patch or a server-side apply makes of an object,
// and who owns which field afterwards.
//
// Patch handles the three patch formats that change an object in place; Ownership
// handles server-side apply and the bookkeeping of field managers that every write
// brings. Nothing here reads or writes the store, defaults, admits or validates.
// Errors are StatusErrors where the client is to blame.
package apply
