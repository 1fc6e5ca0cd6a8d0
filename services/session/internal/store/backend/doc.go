// Package backend has the common part of the backends of store: the conversion
// between rows and messages, the changes of a submitted command or a commit
// given the current rows, and the delivery of wakes. It has no SQL. Both
// backends decide here, so that they answer alike.
package backend
