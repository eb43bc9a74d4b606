// Package file reads and writes cache files: the objects of a server as they are in memory, for its next start. A file is a
// blockfile. Some blocks have objects of one resource, in key order; the directory has what reading them needs. The others have
// their values, which are read on demand (package values).
//
// Package cache converts between its items and Objects. A reader checks everything that it relies on: damage makes a file
// unusable, and never ends the process. The database attests that a file belongs to it (sqlstore.Attestor).
package file
