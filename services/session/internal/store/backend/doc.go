// Package backend is what the backends of store have in common: how rows turn
// into messages and back, what a submitted command and a commit change given the
// rows as they are, and how wakes reach their listeners. It speaks no SQL. That
// both backends decide here is what makes them answer alike.
package backend
