// Package packing compresses many similar objects, of which it knows only bytes: dictionaries made of samples (Learner), labels
// and owners that neighbors share (Common, Neighbors), the bytes that may stay plain (Budget), and the pace of a round (Pace).
// Package cache packs its items with it, and package file writes packed items to a file.
package packing
