// Package apply computes what a patch or a server-side apply makes of an object,
// and who owns which field afterwards.
package apply
