// Package generations is a bounded cache in memory: when the young generation is
// full it becomes the old one, and what was not asked for meanwhile is forgotten.
//
// A Cache holds at most twice Cache.Most. It is not safe for concurrent use: who
// shares one guards it. Packages fleet (compiled expressions), gitrepo (objects)
// and gitrepo/packs (bases of deltas) keep one.
package generations
