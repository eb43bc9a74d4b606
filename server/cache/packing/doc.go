// Package packing has what it takes to keep many objects in little memory, and knows no objects: dictionaries that
// are learned from samples (Learner), what objects have in common with their neighbors (Common, Neighbors), the bytes that may
// stay as they are (Budget), and the pace of a round (Pace). Package cache packs its items with it, and package file
// writes them as they lie packed.
package packing
