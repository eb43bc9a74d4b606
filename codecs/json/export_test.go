package json

// Mistyped is mistyped.
var Mistyped = mistyped
