// Package packing compresses many similar objects, of which it knows only bytes: dictionaries made of samples (Trainer), labels
// and owners that neighbors share (Common, Interner), the bytes that may stay plain (Budget), and the speed of a round (Throttle).
// Package cache packs its items with it, and package file writes packed items to a file.
package packing
